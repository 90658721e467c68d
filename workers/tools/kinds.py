"""What a tool is, what it is given and what it gives back."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from models.settings import settings
from workers.tools.output import OutputSoFar


class ToolError(Exception):
    """The tool says no, in plain words for the model. Its effect has ended or never began."""


class OutcomeUnknown(Exception):
    """Nobody can prove that the call's effect has ended. A person must settle it."""


@dataclass(frozen=True)
class ToolResult:
    """Text blocks as the Messages API has them: `{"type": "text", "text": str}`."""

    content: list[dict[str, Any]]
    is_error: bool = False


@dataclass
class ToolContext:
    """What one call is given. `seconds` is its time limit, counted from when it runs."""

    call_id: str
    """The idempotency key: the same for every attempt at this call."""
    session_id: str
    root: Path
    """The session's own folder, from `workdir.session_root`."""
    seconds: float
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set by the worker, from any thread, to have the tool end early."""
    output: OutputSoFar = field(default_factory=OutputSoFar)
    """What the tool has printed until now; may be read from any thread while it runs."""

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

    @property
    def time_limit(self) -> float:
        """Seconds that one call may take."""
        return settings().tool_seconds if self.seconds is None else self.seconds


def text_result(*texts: str, is_error: bool = False) -> ToolResult:
    """A result of one text block for each text."""
    return ToolResult([{"type": "text", "text": text} for text in texts], is_error)
