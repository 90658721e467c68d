"""The lines of a timeline, and the bars of the time that they took."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from api.desk.rendering.tree import Node
from models.pure.state_words import StateWord, session_state
from models.pure.text.relative_time import number_with_noun
from models.pure.text.visible import visible, visible_lines

_FIRST_LINES = 12
_FIRST_CHARACTERS = 1_200
_MOST_RESULT = 20_000
"""Most characters of a result on the page. The API has the whole result."""


@dataclass(frozen=True)
class Output:
    """A result: its first lines, and the rest, which is folded."""

    first: str
    rest: str = ""
    rest_words: str = ""
    """The summary of the rest, such as `40 more lines`."""

    @classmethod
    def of(cls, text: str) -> "Output":
        """Return a result with hidden characters written out."""
        text_to_show = visible_lines(text[:_MOST_RESULT])
        left_out = len(text) - _MOST_RESULT
        more = f"\n({left_out} more characters, which the API has)" if left_out > 0 else ""
        lines = text_to_show.split("\n")
        first = "\n".join(lines[:_FIRST_LINES])[:_FIRST_CHARACTERS]
        rest = text_to_show[len(first) :].removeprefix("\n") + more
        words = number_with_noun(rest.count("\n") + 1, "more line") if rest else ""
        return cls(first or "(nothing)", rest, words)


@dataclass
class Call:
    """One call in a line, and what unfolds."""

    glyph: str
    tool: str
    gist: str
    is_code: bool
    state: StateWord
    facts: list[str]
    """Who allowed it, how it ended, how long it ran."""
    why: str
    """Why it was asked, allowed or denied, as a sentence. Shown unless people decided; empty if the call is not known."""
    command: str = ""
    arguments: Node | None = None
    decisions: list[str] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    """If there were several."""
    output: Output | None = None
    approval_id: str = ""
    """The approval for which it waits."""


@dataclass
class Line:
    """One line of the timeline."""

    id: str
    seq: int
    at: datetime
    css: str
    """`person`, `agent`, `received`, `call`, `error`, `decision`, `result`, `gap`, or `note`."""
    who: str = ""
    text: str = ""
    call: Call | None = None
    output: Output | None = None
    times: int = 1
    """Of an error that came several times in a row."""
    last_at: datetime | None = None
    approval_id: str = ""

    @property
    def is_markdown(self) -> bool:
        """True for what an agent wrote."""
        return self.css == "agent"


@dataclass(frozen=True)
class Bar:
    """A time in which the model worked, a tool ran, or somebody was waited for."""

    lane: str
    """`model`, `tool` or `person`."""
    start: datetime
    end: datetime
    words: str
    target: str
    """The address of the line to which it belongs."""
    is_bad: bool = False


def short(length: timedelta) -> str:
    """Return a length of time as `0.3 s`, `12 s`, `4 min`, `2 h` or `3 d`."""
    seconds = max(length.total_seconds(), 0)
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{int(seconds)} s"


def note_of(event: Mapping[str, Any]) -> str:
    """Return the words of an event that needs few; empty for one that readers do not see."""
    match event["type"]:
        case "session.status_idle" | "session.thread_status_idle":
            return _ENDS.get(session_state("idle", event["stop_reason"]).word, "")
        case "session.status_terminated":
            return "The session was archived."
        case "session.thread_status_terminated":
            return "The agent was archived."
        case "agent.thread_context_compacted":
            return "A summary took the place of older turns in what the model gets."
        case "model.fallback":
            return visible(f"Went on with {event['to']['model']}, because {event['from']['model']} failed.")
    return ""


_ENDS = {
    "done": "Done.",
    "stopped": "The run was stopped.",
    "failed": "The run failed.",
    "refused": "The model refused.",
    "out of budget": "Out of budget.",
    "out of turns": "Out of turns.",
    "cut off": "The reply was cut off.",
}
"""By the state in which a run left the session. One that waits needs no words: the line of its call has them."""
