"""A tool, the context of its calls, and their results."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from assent import Cache, ToolError
from models.settings import settings
from workers import leash
from workers.tools.output import OutputSoFar


@dataclass(frozen=True)
class ToolQuestion:
    """Questions that a person must answer before the call can go on. The call then runs again with the answers."""

    requests: dict[str, dict[str, Any]]
    """By key: `{"message": str, "schema": {...}}`, a JSON Schema of the form; or `{"message": str, "url": str}`, a page."""
    state: str | None
    """Opaque; returned with the answers."""


@dataclass(frozen=True)
class Answers:
    """People's answers to a `Question`."""

    by_key: dict[str, dict[str, Any]]
    """`{"action": "accept" | "decline" | "cancel", "content": {...}?}`."""
    state: str | None


@dataclass(frozen=True)
class ToolResult:
    """Content blocks in the format of the Messages API: `text`, `image`, `document`."""

    content: list[dict[str, Any]]
    is_error: bool = False
    structured: dict[str, Any] | None = None
    """The same as data, if the tool returns data."""
    question: ToolQuestion | None = None
    """If set, there is no result yet."""
    whole: bytes | None = None
    """The whole text, if `content` has only its head and tail."""


class OutOfTime(ToolError):
    """The call's time limit has passed, or somebody cancelled the call."""


@dataclass
class ToolContext:
    """The context of one call. `seconds` is its time limit, from the moment it runs."""

    call_id: str
    """The idempotency key: the same for every attempt at this call."""
    session_id: str
    root: Path
    """The session's own folder (`workdir.session_root`)."""
    seconds: float
    workspace_id: str = ""
    principal: str = ""
    """Who allowed the call: `api_key:...` or `person:...` who decided, `grant:...`, or `policy`."""
    attempt: int = 1
    answers: Answers | None = None
    """Answers to the question of an earlier attempt."""
    stored_result: Callable[[str], bytes | None] = lambda _call_id: None
    """The stored result of an earlier call of this session that was too long for the model; None if there is none."""
    path_targets: "Mapping[str, str | Exception]" = field(default_factory=dict)
    """The targets of the input's paths when the policy judged the call (`paths.Targets`). The paths must still lead there."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """The worker sets it, from any thread, to cancel the call."""
    output: OutputSoFar = field(default_factory=OutputSoFar)
    """The output of the tool so far. Any thread may read it while the tool runs."""

    def require_lease(self) -> None:
        """Check the lease right before an effect. Raises ToolError if the lease has ended, as in a worker that was frozen."""
        if leash.lapsed():
            raise ToolError(f"not done: {leash.LAPSED}")

    def require_time(self, deadline: float) -> None:
        """Check the call's `deadline`, by `time.monotonic`. Raises OutOfTime."""
        if self.cancelled.is_set():
            raise OutOfTime("cancelled")
        if time.monotonic() > deadline:
            raise OutOfTime(f"timed out after {self.seconds:g} s")

    @property
    def workdir(self) -> Path:
        """The session's files. File tools reach nothing else."""
        return self.root / "files"

    @property
    def state(self) -> Path:
        """State of tools between calls. The model cannot read it."""
        return self.root / "state"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool. `run` gets input that fits `input_schema`, which allows no further fields."""

    name: str
    description: str
    input_schema: dict[str, Any]
    effect: Literal["read", "write"]
    idempotent: bool
    """True if a second run with the same key and input changes nothing more."""
    seconds: float | None = None
    """Time limit; None: the setting `tool_seconds`."""
    prompt: str
    """The question for a person: a template with the input's fields."""
    run: Callable[[ToolContext, dict[str, Any]], ToolResult]
    cache: Cache | None = None
    policy: Mapping[str, Any] | None = None
    """The policy where neither the agent nor the workspace has one; None: ask."""
    approval: Mapping[str, Any] | None = None
    """The author's `options`, `default_scope` and `widest_match` of approvals; None: every option."""
    queue: str | None = None
    """The Celery queue of the workers that run it; None: all workers that have its toolset."""
    workdir: bool = True
    """True if it works on the session's files, and so needs a worker that has them."""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """MCP's annotations (`readOnlyHint` and the like), shown to people."""

    @classmethod
    def of_entry(cls, entry: Mapping[str, Any], run: Callable[[ToolContext, dict[str, Any]], ToolResult]) -> "Tool":
        """Return the tool of an entry (`as_entry`) from this or another worker. `run` runs its calls."""
        own_fields = {each.name: entry[each.name] for each in fields(cls) if each.name in entry}
        cache = Cache(**entry["cache"]) if entry.get("cache") else None
        return cls(**(own_fields | {"run": run, "cache": cache, "annotations": entry.get("annotations") or {}}))

    @property
    def time_limit(self) -> float:
        """Time limit of one call, in seconds."""
        return settings().tool_seconds if self.seconds is None else self.seconds

    @cached_property
    def as_entry(self) -> dict[str, Any]:
        """The tool as JSON, for processes that show it to a model but do not run it: an entry of `models.workspace.toolset`."""
        entry = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "run"}
        return entry | {
            "cache": asdict(self.cache) if self.cache else None,
            "policy": dict(self.policy) if self.policy else None,
            "approval": dict(self.approval) if self.approval else None,
            "annotations": dict(self.annotations),
        }


def text_result(*texts: str, is_error: bool = False) -> ToolResult:
    """Return a result with one text block for each text."""
    return ToolResult([{"type": "text", "text": text} for text in texts], is_error)
