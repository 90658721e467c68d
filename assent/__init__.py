"""What a team writes tools with: typed Python functions under a decorator.

    from assent import Context, Toolset

    orders = Toolset("orders", description="Orders of the shop.")

    @orders.tool(effect="write", idempotent=True, prompt="Refund {amount_cents} of order {order_id}")
    def refund(order_id: str, amount_cents: int, context: Context) -> str:
        "Refund a part of an order."

The decorator returns the function unchanged: a test calls the function with `Context("any id")`, and `assent.testing` has more for
tests. A worker finds the toolset by the setting ASSENT_TOOLSETS or the entry point group `assent.toolsets`, and runs the functions
in a process of their own.

This package imports the standard library alone, so that a team's packages may have any name.
"""

import logging
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

__all__ = ["Cache", "Context", "Document", "Image", "ToolError", "Toolset"]

_TOOLSET = re.compile(r"[a-z](_?[a-z0-9-])*")
_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_QUEUE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_OPTIONS = ("once", "session", "always", "edit", "answer")
_SCOPES = ("session", "always")
_MATCHES = ("tool", "exact")
_RESERVED = frozenset({"builtin", "git", "session"})

P = ParamSpec("P")
R = TypeVar("R")


class ToolError(Exception):
    """The tool refuses, with a reason for the model in plain words. The call had no effect, or its effect has ended."""


@dataclass(frozen=True)
class Image:
    """An image for the model to see: PNG, JPEG, GIF or WebP."""

    data: bytes
    media_type: str = "image/png"


@dataclass(frozen=True)
class Document:
    """A document for the model to read: a PDF, or plain text."""

    data: bytes | str
    media_type: str = "application/pdf"
    title: str | None = None


@dataclass(frozen=True)
class Cache:
    """How long, and for which scope, a result serves the same call again."""

    seconds: float
    scope: Literal["session", "workspace"] = "session"


@dataclass(frozen=True)
class Context:
    """What a function can know about its call. A parameter of this type gets the context; the model does not see the parameter."""

    call_id: str
    """The idempotency key: the same for every attempt at one call, and for no other call."""
    session_id: str = ""
    workspace_id: str = ""
    principal: str = ""
    """Who allowed the call: `api_key:...` of the person, `policy`, `grant:...`."""
    attempt: int = 1
    log: logging.Logger = field(default=logging.getLogger("toolset"))
    """Writes to the worker's log, with the call's id."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when a person cancels the call. The function then has a few seconds to end."""
    folder: Path | None = None

    @property
    def workdir(self) -> Path:
        """The session's files. Raises RuntimeError if the tool is not declared with `workdir=True`."""
        if self.folder is None:
            raise RuntimeError("the tool has no files: declare it with workdir=True")
        return self.folder


@dataclass(frozen=True)
class Declaration:
    """A function with the arguments of its decorator. `Toolset.tool` explains each field."""

    function: Callable[..., Any]
    effect: Literal["read", "write"]
    idempotent: bool
    seconds: float | None
    cache: Cache | None
    retry_on: tuple[type[Exception], ...]
    prompt: str
    masked: tuple[str, ...]
    policy: str | Mapping[str, Any] | None
    options: tuple[str, ...] | None
    default_scope: str | None
    widest_match: str | None
    queue: str | None
    workdir: bool

    @property
    def name(self) -> str:
        """The tool's name, which is the function's."""
        return str(getattr(self.function, "__name__", "?"))

    @property
    def where(self) -> str:
        """The function's place in the code, for error messages."""
        return f"{getattr(self.function, '__module__', '?')}.{getattr(self.function, '__qualname__', self.name)}"

    @property
    def approval(self) -> dict[str, Any] | None:
        """What people may decide, as the settings of an agent have them; None for all."""
        fields = {"options": self.options and list(self.options), "default_scope": self.default_scope}
        fields |= {"widest_match": self.widest_match}
        return {name: value for name, value in fields.items() if value is not None} or None

    def _has_good_scope(self) -> bool:
        options = self.options if _are_options(self.options) and self.options is not None else _OPTIONS
        return self.default_scope is None or (self.default_scope in _SCOPES and self.default_scope in options)

    def fault(self) -> str | None:
        """The first fault of the declaration with its remedy, None for none."""
        faults = {
            "its name cannot be a tool's; use 1 to 64 letters, digits, _ and -": not _TOOL.fullmatch(self.name),
            f"unknown effect {self.effect!r}; use 'read' or 'write'": self.effect not in ("read", "write"),
            f"seconds is {self.seconds!r}; use a number above 0, or leave it out": not _positive(self.seconds),
            "cache is not a Cache; write Cache(seconds) with seconds above 0": not _is_cache(self.cache),
            "cache hides that a tool that writes did not write again; leave it out": self.cache and self.effect == "write",
            "retry_on must be a tuple of exceptions, such as (ConnectionError,)": not _are_exceptions(self.retry_on),
            "retry_on calls the function again; write idempotent=True if a second run does no harm": (
                self.retry_on and not self.idempotent
            ),
            f"options is {self.options!r}; write a tuple of {', '.join(map(repr, _OPTIONS))}, each once, or leave it out for all; "
            "people may always deny": not _are_options(self.options),
            f"default_scope is {self.default_scope!r}; use 'session' or 'always', one of the options": not self._has_good_scope(),
            f"widest_match is {self.widest_match!r}; use 'tool' or 'exact'": self.widest_match not in (None, *_MATCHES),
            f"queue {self.queue!r}: use up to 64 of a-z, 0-9, -, _ and .": not _is_queue(self.queue),
            f"masked is a text; write a tuple, as in masked=({self.masked!r},)": isinstance(self.masked, str),
        }
        return next((fault for fault, is_fault in faults.items() if is_fault), None)


class Toolset:
    """Tools under one name. A wrong declaration raises ValueError, which names the fault and the remedy."""

    def __init__(self, name: str, description: str = "") -> None:
        if len(name) > 48 or not _TOOLSET.fullmatch(name):
            raise ValueError(f"toolset {name!r}: use up to 48 of a-z, 0-9, - and single _, a letter first")
        if name in _RESERVED:
            raise ValueError(f"toolset {name!r}: Assent has a toolset of this name; use another name")
        self.name = name
        self.description = description
        self.tools: dict[str, Declaration] = {}
        """By name, in the order of declaration."""

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
        options: tuple[Literal["once", "session", "always", "edit", "answer"], ...] | None = None,
        default_scope: Literal["session", "always"] | None = None,
        widest_match: Literal["tool", "exact"] | None = None,
        queue: str | None = None,
        workdir: bool = False,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Declare the decorated function as a tool.

        Args:
            effect: `read` changes nothing in the world; such a tool is idempotent unless `idempotent` says otherwise.
            idempotent: Whether a second run under the same `context.call_id` changes nothing more. After a crash only an
                idempotent call runs again by itself; a person settles any other call.
            seconds: Time limit of a call, at which its process is killed. Default: the setting ASSENT_TOOL_SECONDS.
            cache: How long, and for which scope, a result serves the same call again; only for tools that read.
            retry_on: Exceptions after which the function runs again at once, up to 3 times; only if idempotent.
            prompt: The sentence that a person is asked, with `{parameter}` for arguments.
            masked: Parameters whose values nobody is shown.
            policy: `always_allow`, `always_ask` or `always_deny`, or rules as agents have them about arguments of this tool. The
                policy applies where neither the agent nor the workspace has one.
            options: What people may decide: allow `once`, for the `session` or `always`, `edit` the input, `answer` in the
                tool's place. People may always deny. No agent and no workspace adds to them. Default: all.
            default_scope: The scope that a form suggests for a grant. Default: `session`.
            widest_match: `exact` if a grant may cover one exact input only. Default: `tool`, every call.
            queue: The Celery queue whose workers run the tool. Default: all workers that have the toolset.
            workdir: Whether the function needs the session's files (`context.workdir`).
        """

        def declare(function: Callable[P, R]) -> Callable[P, R]:
            repeatable = effect == "read" if idempotent is None else idempotent
            declaration = Declaration(
                function,
                effect,
                repeatable,
                seconds,
                cache,
                retry_on,
                prompt,
                masked,
                policy,
                options,
                default_scope,
                widest_match,
                queue,
                workdir,
            )
            if fault := declaration.fault():
                raise ValueError(f"{declaration.where}: {fault}")
            if declaration.name in self.tools:
                raise ValueError(f"{declaration.where}: toolset {self.name} has a tool of that name already; rename one")
            self.tools[declaration.name] = declaration
            return function

        return declare


def _positive(seconds: float | None) -> bool:
    return seconds is None or 0 < seconds < math.inf


def _is_cache(cache: object) -> bool:
    return cache is None or (isinstance(cache, Cache) and cache.seconds > 0)


def _are_exceptions(kinds: object) -> bool:
    return isinstance(kinds, tuple) and all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds)


def _are_options(options: object) -> bool:
    if options is None:
        return True
    if not isinstance(options, tuple) or not options:
        return False
    return all(option in _OPTIONS and options.count(option) == 1 for option in options)


def _is_queue(queue: str | None) -> bool:
    return queue is None or bool(_QUEUE.fullmatch(queue))
