"""What a tool is, what it is given and what it gives back."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from assent import Cache
from models.settings import settings
from workers.tools.errors import LAPSED, ToolError
from workers.tools.output import OutputSoFar
from workers.tools.sandbox import lease_clock


@dataclass(frozen=True)
class Question:
    """What a tool must be told before it can go on: the call is put to a person, and comes again with the answers."""

    requests: dict[str, dict[str, Any]]
    """By key: `{"message": str, "schema": {...}}`, a JSON Schema of the form; or `{"message": str, "url": str}`, a page."""
    state: str | None
    """Opaque; comes back with the answers."""


@dataclass(frozen=True)
class Answers:
    """What people said to a `Question`."""

    by_key: dict[str, dict[str, Any]]
    """`{"action": "accept" | "decline" | "cancel", "content": {...}?}`."""
    state: str | None


@dataclass(frozen=True)
class ToolResult:
    """Content blocks as the Messages API has them: `text`, `image`, `document`."""

    content: list[dict[str, Any]]
    is_error: bool = False
    structured: dict[str, Any] | None = None
    """The same as data, where the tool gives any."""
    question: Question | None = None
    """Set: there is no result yet."""
    whole: bytes | None = None
    """The whole text, where `content` has only its ends."""


@dataclass
class ToolContext:
    """What one call is given. `seconds` is its time limit, counted from when it runs."""

    call_id: str
    """The idempotency key: the same for every attempt at this call."""
    session_id: str
    root: Path
    """The session's own folder, from `workdir.session_root`."""
    seconds: float
    workspace_id: str = ""
    principal: str = ""
    """Who let it run: `api_key:...` or `person:...` who decided, `grant:...`, or `policy`."""
    attempt: int = 1
    answers: Answers | None = None
    """To the question that an earlier attempt ended in."""
    stored: Callable[[str], bytes | None] = lambda _call_id: None
    """The whole result of an earlier call of this session, where it was too long for the model; None if there is none."""
    judged: "Mapping[str, str | ToolError]" = field(default_factory=dict)
    """Where paths of the input led when the call was judged: `paths.Judged`. There, and nowhere else, they may lead now."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set by the worker, from any thread, to have the tool end early."""
    output: OutputSoFar = field(default_factory=OutputSoFar)
    """What the tool has printed until now; may be read from any thread while it runs."""

    def require_lease(self) -> None:
        """Look at the lease, right before an effect begins. Errors: ToolError if it has run out, as in a worker that was frozen."""
        if lease_clock.lapsed():
            raise ToolError(f"not done: {LAPSED}")

    @property
    def workdir(self) -> Path:
        """The session's files: all that the file tools can reach."""
        return self.root / "files"

    @property
    def state(self) -> Path:
        """What tools remember between calls; no tool lets the model see it."""
        return self.root / "state"


@dataclass(frozen=True)
class Tool:
    """One tool, declared once. `run` gets input that fits `input_schema`, which allows no further fields."""

    name: str
    description: str
    input_schema: dict[str, Any]
    effect: Literal["read", "write"]
    idempotent: bool
    """True if a second run under the same key and input leaves things as one run does."""
    seconds: float | None
    """Time limit; None: the setting `tool_seconds`."""
    prompt: str
    """What a person is asked, a template over the input's fields."""
    run: Callable[[ToolContext, dict[str, Any]], ToolResult]
    cache: Cache | None = None
    policy: Mapping[str, Any] | None = None
    """What holds where no agent and no workspace says anything; None: ask."""
    queue: str | None = None
    """Which workers run it; None: those that have its toolset."""
    workdir: bool = True
    """Whether it works on the session's files, and so only where these are."""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """What MCP calls so (`readOnlyHint` and the like): shown to people."""

    @classmethod
    def of_entry(cls, entry: Mapping[str, Any], run: Callable[[ToolContext, dict[str, Any]], ToolResult]) -> "Tool":
        """The tool that was `described` so, here or elsewhere, carried out by `run`."""
        cache = entry.get("cache")
        return cls(
            name=entry["name"],
            description=entry["description"],
            input_schema=entry["input_schema"],
            effect=entry["effect"],
            idempotent=entry["idempotent"],
            seconds=entry["seconds"],
            prompt=entry["prompt"],
            run=run,
            cache=Cache(**cache) if cache else None,
            policy=entry.get("policy"),
            queue=entry.get("queue"),
            workdir=entry["workdir"],
            annotations=entry.get("annotations") or {},
        )

    @property
    def time_limit(self) -> float:
        """Seconds that one call may take."""
        return settings().tool_seconds if self.seconds is None else self.seconds

    @cached_property
    def described(self) -> dict[str, Any]:
        """Itself as JSON, for those that give it to a model but do not run it: an entry of `models.workspace.toolset`."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "effect": self.effect,
            "idempotent": self.idempotent,
            "seconds": self.seconds,
            "prompt": self.prompt,
            "cache": {"seconds": self.cache.seconds, "scope": self.cache.scope} if self.cache else None,
            "policy": dict(self.policy) if self.policy else None,
            "queue": self.queue,
            "workdir": self.workdir,
            "annotations": dict(self.annotations),
        }


def text_result(*texts: str, is_error: bool = False) -> ToolResult:
    """A result of one text block for each text."""
    return ToolResult([{"type": "text", "text": text} for text in texts], is_error)
