"""How a team writes tools of its own: plain typed functions under a decorator.

    orders = Toolset("orders", description="Orders of the shop.")

    @orders.tool(effect="write", idempotent=True, prompt="Refund {amount_cents} of order {order_id}")
    def refund(order_id: str, amount_cents: int, context: Context) -> str:
        "Refund a part of an order."

The function stays itself: tests call it with a `Context("any id")`. Workers find the toolset by the entry point group
`assent.toolsets` or the setting ASSENT_TOOLSETS, and run it in a process of its own (see `running`): with the worker's environment
but for Assent's own secrets (`child.SECRETS`), one call at a time, killed with all that it started when a call takes too long.
"""

import json
import logging
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from models.pure.backoff import backoff
from models.pure.policy import Match, policy_of
from workers.tools.errors import ToolError
from workers.tools.kinds import Cache, Tool, ToolContext, ToolResult
from workers.tools.python.returned import Document, Image, result_of
from workers.tools.python.signature import Signature, read

__all__ = ["Cache", "Context", "Document", "Image", "ToolError", "Toolset"]

TRIES = 3
"""How often one call of a function is tried that fails with one of its `retry_on`."""
_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.2, 2.0
_TOOLSET = re.compile(r"[a-z](_?[a-z0-9-])*")
_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_QUEUE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_FIELD = re.compile(r"\{(/?[\w.~/-]+)\}")
_RESERVED = frozenset({"builtin", "git", "session"})

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Context:
    """What a call is given beside its arguments: a parameter of this type gets it, and the model knows nothing of that."""

    call_id: str
    """The idempotency key: the same for every attempt at one call, and for no other call."""
    session_id: str = ""
    workspace_id: str = ""
    principal: str = ""
    """Who let it run: `api_key:...` of the person, `policy`, `grant:...`."""
    attempt: int = 1
    log: logging.Logger = field(default=logging.getLogger("toolset"))
    """Goes to the worker's log, with the call's id."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when a person wants it to end; it then has a few seconds to do so."""
    folder: Path | None = None

    @property
    def workdir(self) -> Path:
        """The session's files; of tools that are declared with `workdir=True`, which run where these are."""
        if self.folder is None:
            raise RuntimeError("the tool is not declared with workdir=True, and has no files")
        return self.folder


class Toolset:
    """Tools under one name. A wrong declaration raises ValueError or TypeError, which say what would be right."""

    def __init__(self, name: str, description: str = "") -> None:
        if len(name) > 48 or not _TOOLSET.fullmatch(name):
            raise ValueError(f"toolset {name!r}: use up to 48 of a-z, 0-9, - and single _, a letter first")
        if name in _RESERVED:
            raise ValueError(f"toolset {name!r}: the name is ours; use another")
        self.name = name
        self.description = description
        self.tools: dict[str, Tool] = {}
        """By name, in the order in which they were declared."""

    def __repr__(self) -> str:
        return f"Toolset({self.name!r}, {len(self.tools)} tools)"

    def tool(
        self,
        *,
        effect: Literal["read", "write"],
        idempotent: bool | None = None,
        seconds: float | None = None,
        cache: Cache | None = None,
        retry_on: tuple[type[Exception], ...] = (),
        prompt: str = "",
        masked: tuple[str, ...] = (),
        policy: str | Mapping[str, Any] | None = None,
        queue: str | None = None,
        workdir: bool = False,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Declare the decorated function as a tool.

        Args:
            effect: `read` changes nothing in the world; such a tool is idempotent unless `idempotent` says otherwise.
            idempotent: Whether a second run under the same `context.call_id` leaves things as one run does. Only then is a call
                run again by itself after a crash; of another a person is asked what became of it.
            seconds: Time limit of a call, at which its process is killed; the setting ASSENT_TOOL_SECONDS unless said.
            cache: How long, and for whom, a result answers the same call again; of tools that read.
            retry_on: Exceptions after which the function is called again at once, up to `TRIES` times; only if idempotent.
            prompt: What a person is asked, with `{parameter}` for arguments.
            masked: Parameters whose values nobody is shown.
            policy: `always_allow`, `always_ask` or `always_deny`, or rules as agents have them, on arguments of this tool; it
                holds where no agent and no workspace says anything.
            queue: The Celery queue whose workers run it; all workers that have the toolset unless said.
            workdir: Whether it needs the session's files (`context.workdir`).
        """

        def declare(function: Callable[P, R]) -> Callable[P, R]:
            name = str(getattr(function, "__name__", "?"))
            signature = read(function, Context, masked)
            repeatable = effect == "read" if idempotent is None else idempotent
            where = f"{function.__module__}.{name}"
            for fault in _faults(self, name, effect, repeatable, seconds, cache, retry_on, queue):
                raise ValueError(f"{where}: {fault}")
            tool = Tool(
                name=name,
                description=signature.description,
                input_schema=signature.input_schema,
                effect=effect,
                idempotent=repeatable,
                seconds=seconds,
                prompt=_prompt(where, prompt, signature),
                run=_Run(self.name, function, signature, retry_on, workdir),
                cache=cache,
                policy=_policy(where, name, policy, signature),
                queue=queue,
                workdir=workdir,
            )
            json.dumps(tool.described, allow_nan=False)
            self.tools[name] = tool
            return function

        return declare


@dataclass(frozen=True)
class _Run:
    """Runs the function right here, as the runner does."""

    toolset: str
    function: Callable[..., Any]
    signature: Signature
    retry_on: tuple[type[Exception], ...]
    workdir: bool

    def __call__(self, given: ToolContext, fields: dict[str, Any]) -> ToolResult:
        arguments = self.signature.arguments(fields)
        context = Context(
            call_id=given.call_id,
            session_id=given.session_id,
            workspace_id=given.workspace_id,
            principal=given.principal,
            attempt=given.attempt,
            log=logging.getLogger(f"toolset.{self.toolset}"),
            cancelled=given.cancelled,
            folder=given.workdir if self.workdir else None,
        )
        arguments |= dict.fromkeys(self.signature.contexts, context)
        for attempt in range(1, TRIES + 1):
            try:
                return result_of(self.function(**arguments))
            except ToolError:
                raise
            except self.retry_on as error:
                if attempt == TRIES or context.cancelled.wait(backoff(attempt, _WAIT_SECONDS, _LONGEST_WAIT_SECONDS)):
                    raise
                context.log.warning("call %s: try %d failed (%s)", given.call_id, attempt, type(error).__name__)
        raise AssertionError("unreachable")


def _faults(
    toolset: Toolset,
    name: str,
    effect: str,
    idempotent: bool,
    seconds: float | None,
    cache: Cache | None,
    retry_on: tuple[type[Exception], ...],
    queue: str | None,
) -> list[str]:
    """What is wrong with a declaration, and what would be right."""
    told = {
        "its name cannot be a tool's; use 1 to 64 letters, digits, _ and -": not _TOOL.fullmatch(name),
        f"toolset {toolset.name} has a tool of that name already; rename one": name in toolset.tools,
        f"effect {effect!r} is none; use 'read' or 'write'": effect not in ("read", "write"),
        f"seconds is {seconds!r}; use a number above 0, or leave it out": seconds is not None and not 0 < seconds < math.inf,
        "cache is no Cache; write Cache(seconds)": cache is not None and not (isinstance(cache, Cache) and cache.seconds > 0),
        "cache: a kept result of a tool that writes would hide that nothing was written; leave it out": cache and effect == "write",
        "retry_on must be a tuple of exceptions, such as (ConnectionError,)": not _exceptions(retry_on),
        "retry_on calls the function again, so say idempotent=True once a second run does no harm": retry_on and not idempotent,
        f"queue {queue!r}: use up to 64 of a-z, 0-9, -, _ and .": queue is not None and not _QUEUE.fullmatch(queue),
    }
    return [fault for fault, so in told.items() if so]


def _exceptions(found: object) -> bool:
    return isinstance(found, tuple) and all(isinstance(kind, type) and issubclass(kind, Exception) for kind in found)


def _prompt(where: str, prompt: str, signature: Signature) -> str:
    for found in _FIELD.findall(prompt):
        name = found.removeprefix("/").replace("/", ".").partition(".")[0]
        _known(where, "prompt", name, [*signature.parameters, "tool"])
    return prompt


def _policy(where: str, tool: str, said: str | Mapping[str, Any] | None, signature: Signature) -> dict[str, Any] | None:
    """The policy as agents have it, held to be about this tool and its parameters."""
    if said is None:
        return None
    spelled = {"type": said} if isinstance(said, str) else dict(said)
    try:
        policy = policy_of(spelled, tool=tool)
    except ValueError as error:
        raise ValueError(f"{where}: policy: {error}") from None
    for rule in policy.rules:
        if rule.match.tool not in (tool, "*"):
            raise ValueError(f"{where}: policy: a rule is about {rule.match.tool!r}; match the tool itself, {tool!r}")
        _known_paths(where, rule.match, signature)
    return spelled


def _known_paths(where: str, match: Match, signature: Signature) -> None:
    for condition in match.conditions:
        name = condition.path.removeprefix("/").partition("/")[0].replace("~1", "/").replace("~0", "~")
        _known(where, "policy", name, signature.parameters)


def _known(where: str, what: str, name: str, known: list[str]) -> None:
    if name not in known:
        raise ValueError(f"{where}: {what} names {name!r}, which is none of its parameters; they are: {', '.join(known) or 'none'}")
