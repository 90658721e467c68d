"""The word and the glyph of each state, the same on pages, in mail, in Slack and in terminals.

A glyph has a name. Pages draw it (`api/desk/shell/glyphs.svg`); texts print the character that `CHARACTERS` has for it. A glyph
never stands without its word, and a colour has one meaning: `good` is allowed or done, `bad` is denied or failed, `due` needs
somebody or is unknown, and `plain` is the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Tone = Literal["good", "bad", "due", "plain"]

CHARACTERS = {
    "alert": "!",
    "archive": "▪",
    "check": "✓",
    "clock": "○",
    "coin": "$",
    "cross": "✗",
    "dash": "-",
    "pause": "‖",
    "play": "▸",
    "question": "?",
    "retry": "↻",
    "spark": "+",
    "stop": "■",
}
"""One character of a terminal's width for each glyph of a state. All are in the fonts of terminals and mail programs."""


@dataclass(frozen=True)
class StateWord:
    """A state as people read it."""

    word: str
    glyph: str
    tone: Tone = "plain"

    @property
    def character(self) -> str:
        """The glyph as a character."""
        return CHARACTERS[self.glyph]

    @property
    def text(self) -> str:
        """The glyph and the word: `✓ allowed`."""
        return f"{self.character} {self.word}"


APPROVAL = {
    "pending": StateWord("waiting", "clock", "due"),
    "allowed": StateWord("allowed", "check", "good"),
    "denied": StateWord("denied", "cross", "bad"),
    "expired": StateWord("expired", "alert", "bad"),
    "cancelled": StateWord("cancelled", "dash"),
    "answered": StateWord("answered", "check", "good"),
}
"""By the status of an approval."""

GIVEN_UP = StateWord("given up", "dash")
"""The state of an approval about an unknown outcome that people gave up: nobody knows whether the call took effect."""

TOOL_CALL = {
    "asked": StateWord("waiting for a decision", "clock", "due"),
    "queued": StateWord("allowed, waiting for a worker", "check", "good"),
    "held": StateWord("allowed, held by the halt", "pause", "due"),
    "with_client": StateWord("with the client", "clock"),
    "running": StateWord("running", "play"),
    "unknown": StateWord("outcome unknown", "question", "due"),
    "done": StateWord("done", "check", "good"),
    "answered": StateWord("answered by a person", "check", "good"),
    "replaced": StateWord("replaced by an edited call", "dash"),
    "denied": StateWord("denied", "cross", "bad"),
    "expired": StateWord("expired", "alert", "bad"),
    "cancelled": StateWord("cancelled", "dash"),
    "refused": StateWord("refused", "cross", "bad"),
}
"""By the status of a tool call."""

SESSION = {
    "new": StateWord("new", "spark"),
    "working": StateWord("working", "play"),
    "held by the halt": StateWord("held by the halt", "pause", "due"),
    "waiting": StateWord("waiting", "clock", "due"),
    "retrying": StateWord("retrying", "retry", "due"),
    "stopping": StateWord("stopping", "stop"),
    "done": StateWord("done", "check", "good"),
    "stopped": StateWord("stopped", "stop"),
    "failed": StateWord("failed", "cross", "bad"),
    "refused": StateWord("refused", "cross", "bad"),
    "out of budget": StateWord("out of budget", "coin", "due"),
    "out of turns": StateWord("out of turns", "alert", "due"),
    "cut off": StateWord("cut off", "alert", "due"),
    "archived": StateWord("archived", "archive"),
}
"""The states of a session and of a thread, by their words: see `session_state`."""

ENDED_EARLY = frozenset({"failed", "refused", "out of budget", "out of turns", "cut off"})
"""The states of a session that needs attention: its run ended, and the agent had not finished."""

EFFECT = {
    "allow": StateWord("allow", "check", "good"),
    "ask": StateWord("ask", "question", "due"),
    "deny": StateWord("deny", "cross", "bad"),
}
"""What a rule does with a call."""

PAST_CALL = {
    "allowed_by_policy": "ran by policy",
    "allowed_by_grant": "ran by a grant",
    "allowed_by_person": "allowed by a person",
    "allowed_at_deadline": "allowed at the deadline",
    "answered_by_person": "answered by a person",
    "denied_by_policy": "denied by policy",
    "denied_by_person": "denied by a person",
    "expired": "expired",
    "cancelled": "cancelled",
    "waiting": "waiting",
}
"""What became of a past call at its time, as a simulation of a policy tells it."""
DELIVERY = {
    "queued": StateWord("queued", "clock"),
    "running": StateWord("being sent", "play"),
    "done": StateWord("delivered", "check", "good"),
    "failed": StateWord("failed", "cross", "bad"),
    "cancelled": StateWord("cancelled", "dash"),
}
"""By the status of a delivery or of a notification."""

SERVICE = {
    "up": StateWord("up", "check", "good"),
    "down": StateWord("down", "cross", "bad"),
    "halted": StateWord("halted", "stop", "bad"),
    "due": StateWord("due", "alert", "due"),
    "enabled": StateWord("enabled", "check", "good"),
    "failing": StateWord("failing", "alert", "due"),
    "disabled": StateWord("disabled", "dash"),
}
"""The states of what runs, and of endpoints."""

SYSTEM = {
    "late": StateWord("late", "alert", "bad"),
    "queued": StateWord("queued", "clock"),
    "empty": StateWord("empty", "check", "good"),
    "unseen": StateWord("never seen", "alert", "bad"),
    "absent": StateWord("none seen in a day", "clock"),
    "sealed": StateWord("sealed", "check", "good"),
    "unsealed": StateWord("not sealed", "alert", "bad"),
    "unbegun": StateWord("no seal yet", "clock"),
}
"""The states of queues, workers and the audit's seal. Else these are up or down, as any service."""

_AT_WORK = {
    "running": "working",
    "waiting": "waiting",
    "rescheduling": "retrying",
    "stopping": "stopping",
    "terminated": "archived",
}
_ENDS = {"end_turn": "done", "refusal": "refused", "budget_reached": "out of budget", "requires_action": "waiting"}
_LIMITS = {"max_turns": "out of turns", "max_tokens": "cut off", "context_window": "cut off"}


def approval_state(status: str, decision: Mapping[str, Any] | None) -> StateWord:
    """Return the state of an approval by its status and its decision, if it has one."""
    fields = decision or {}
    is_given_up = status == "answered" and (fields.get("outcome") == "give_up" or fields.get("result") == "deny")
    return GIVEN_UP if is_given_up else APPROVAL[status]


def call_state(status: str, *, halted: bool) -> StateWord:
    """Return the state of a tool call by its status. While the workspace is halted, no worker takes a call that is queued."""
    return TOOL_CALL["held" if halted and status == "queued" else status]


def session_state(
    status: str, stop_reason: Mapping[str, Any] | None, *, waits: bool = False, is_held: bool = False, archived: bool = False
) -> StateWord:
    """Return the state of a session or a thread, by the status of its row or of the API.

    `waits`: whether an idle session waits for somebody. `is_held`: whether a halt holds it (`HeldWork`). A run that
    ended for a reason without a word of its own has failed.
    """
    if archived:
        return SESSION["archived"]
    if is_held and not waits:
        return SESSION["held by the halt"]
    if status != "idle" or waits:
        return SESSION[_AT_WORK["waiting" if waits else status]]
    return _at_rest(stop_reason) if stop_reason is not None else SESSION["new"]


def _at_rest(stop_reason: Mapping[str, Any]) -> StateWord:
    if "ended_by" in stop_reason:
        return SESSION["stopped"]
    if limit := stop_reason.get("limit_reached"):
        return SESSION[_LIMITS[limit]]
    return SESSION[_ENDS.get(stop_reason["type"], "failed")]


def word_of(text: str) -> StateWord | None:
    """Return the state of this word, status, or glyph and word; None for any other text."""
    return _BY_TEXT.get(text)


_BY_TEXT = {
    name: state
    for states in (SYSTEM, TOOL_CALL, DELIVERY, SERVICE, EFFECT, SESSION, APPROVAL)
    for status, state in states.items()
    for name in (status, state.word, state.text)
}
