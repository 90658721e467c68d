"""A session's events as entries of a conversation."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from api.desk.rendering.fields import pretty
from models.flow.carry_on.listing import OURS
from models.pure.state_words import TOOL_CALL, session_state
from models.pure.text.relative_time import number_with_noun
from models.pure.text.visible import visible, visible_lines
from models.session.tool_call.events import RESULTS, USES

_LONG = 1200
"""Characters of code beyond which an entry is folded."""


@dataclass(frozen=True)
class Entry:
    """One line of the conversation."""

    id: str
    """The event's id."""
    seq: int
    css: str
    who: str
    text: str = ""
    code: str = ""
    summary: str = ""
    """The summary of long code, which is folded at first; empty for short code."""
    approval_id: str = ""
    """The approval of a call that waits."""


def entry(seq: int, event: Mapping[str, Any], *, state: str = "", approval_id: str = "", asker: str = "") -> Entry | None:
    """Return the event as an entry; None for an event that readers do not see.

    `event` is the wire's, whose secrets are masked. `state` is the status of a call, `approval_id` its pending approval, `asker`
    the path to the agent of another thread.
    """
    kind, id_ = event["type"], event["id"]
    if kind in USES:
        words = TOOL_CALL[state].word if state and state != "done" else ""  # a result follows a call that is done
        whose = f"{asker}: " if asker else ""
        text = whose + visible_lines(event["name"]) + (f": {words}" if words else "")
        new_entry = Entry(id_, seq, "call", "call", text, approval_id=approval_id)
        return _with_code(new_entry, _input(event))
    if kind in dict(RESULTS.values()):
        who = "error" if event.get("is_error") else "result"
        return _with_code(Entry(id_, seq, who, who), texts(event.get("content") or ()))
    if kind == "agent.thread_message_received":
        sender = event.get("from_agent_name") or "coordinator"
        return Entry(id_, seq, "received", f"from {visible(sender)}", visible_lines(_message(event)))
    if kind in _WORDS:
        css, who, words_of = _WORDS[kind] if OURS not in event else ("note", "assent", _message)
        return Entry(id_, seq, css, who, visible_lines(words_of(event)))
    return None


def texts(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Return the texts of content blocks, with a note for each other block."""
    return "\n".join(block["text"] if block.get("type") == "text" else f"({block.get('type')})" for block in blocks)


def _message(event: Mapping[str, Any]) -> str:
    return texts(event.get("content") or ())


def _decision(event: Mapping[str, Any]) -> str:
    message = event.get("deny_message")
    return f"{event['result']}{f': {message}' if message else ''}"


def _rest(event: Mapping[str, Any]) -> str:
    return _RESTS[session_state("idle", event["stop_reason"]).word]


_RESTS = {
    "waiting": "The agent waits for a decision.",
    "done": "The agent has finished.",
    "stopped": "The run was stopped.",
    "failed": "The run failed.",
    "refused": "The model refused.",
    "out of budget": "The run is out of budget.",
    "out of turns": "The run is out of turns.",
    "cut off": "The reply was cut off.",
}
"""By the state in which a run left the session."""


_WORDS: dict[str, tuple[str, str, Callable[[Mapping[str, Any]], str]]] = {
    "user.message": ("person", "person", _message),
    "agent.message": ("agent", "agent", _message),
    "user.tool_confirmation": ("ruling", "decision", _decision),
    "user.interrupt": ("ruling", "person", lambda _event: "Stop."),
    "session.error": ("error", "error", lambda event: str(event["error"].get("message", ""))),
    "session.status_idle": ("note muted", "session", _rest),
    "session.thread_status_idle": ("note muted", "agent", _rest),
    "session.thread_status_terminated": ("note muted", "agent", lambda _event: "The agent was archived."),
    "session.status_terminated": ("note muted", "session", lambda _event: "The session has ended."),
}
"""By type of event: the CSS class, who speaks, and the words."""


def _input(event: Mapping[str, Any]) -> str:
    arguments = event["input"]
    if event["name"] == "bash" and set(arguments) == {"command"} and isinstance(arguments["command"], str):
        return str(arguments["command"])
    return pretty(arguments)


def _with_code(start: Entry, code: str) -> Entry:
    text = visible_lines(code)
    summary = (
        f"{number_with_noun(text.count(chr(10)) + 1, 'line')}, {number_with_noun(len(text), 'character')}"
        if len(text) > _LONG
        else ""
    )
    return replace(start, code=text or "(nothing)", summary=summary)
