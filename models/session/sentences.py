"""Approvals in sentences."""

from collections.abc import Sequence
from datetime import datetime

from models.pure.quorum import Quorum
from models.pure.relative_time import ago
from models.pure.visible import visible_lines
from models.session.approval import Approval
from models.session.vote import Vote

_SNIPPET = 240
"""Characters of a list's line; a cut says how much it leaves out."""

_WISHES = {
    "bash": ("Run shell command: ", "wants to run a shell command"),
    "edit": ("Edit file: ", "wants to edit a file"),
    "write": ("Write file: ", "wants to write a file"),
    "read": ("Read file: ", "wants to read a file"),
    "glob": ("List files matching: ", "wants to list files"),
    "grep": ("Search files for: ", "wants to search files"),
}
"""By built-in tool: how its prompt begins, and the same as the end of a sentence about the agent."""

AFTERWARDS = {
    "deny": "If nobody decides, the call is denied.",
    "end_run": "If nobody decides, the run ends.",
    "escalate": "If nobody decides, others are asked.",
    "allow": "If nobody decides, the call is allowed.",
}
STATUS = {
    "allowed": "Allowed",
    "denied": "Denied",
    "expired": "Expired",
    "cancelled": "Cancelled",
    "answered": "Answered",
    "pending": "Waiting",
}
OUTCOMES = {
    "rerun": "Settled: the call runs again",
    "happened": "Settled: the call took effect",
    "give_up": "Settled: given up",
}


def headline(approval: Approval, agent: str) -> str:
    """What the card asks, as a sentence."""
    if approval.kind == "unknown_outcome":
        return f"{agent} ran {approval.tool}, and nobody knows whether the call took effect"
    if approval.kind == "question":
        return f"{approval.tool} asks something before it goes on"
    start, wish = _WISHES.get(approval.tool, (None, ""))
    return f"{agent} {wish}" if start and approval.prompt.startswith(start) else approval.prompt


def title(approval: Approval) -> tuple[str, str]:
    """A list's line: what is asked, and the part of it that is code, such as the command."""
    start, _ = _WISHES.get(approval.tool, (None, ""))
    if start and approval.prompt.startswith(start):
        return start.removesuffix(": "), _short(approval.prompt.removeprefix(start))
    return _short(approval.prompt), ""


def afterwards(approval: Approval) -> str:
    """What the deadline does."""
    if approval.kind == "tool_call":
        return AFTERWARDS.get(approval.on_timeout, f"If nobody decides: {approval.on_timeout}.")
    if approval.kind == "budget":
        return "If nobody decides, the session rests."
    return "If nobody decides, the call is given up."


def votes(approval: Approval, cast: Sequence[Vote]) -> str:
    """How many of the people that are needed have voted; empty if one is enough."""
    needed = Quorum.of(approval.quorum).required
    return f"{sum(vote.result == 'allow' for vote in cast)} of {needed} people have allowed it" if needed > 1 else ""


def outcome(approval: Approval, by: str, now: datetime) -> str:
    """How an approval ended, and when: `Allowed for this session by Anna, 2 minutes ago`."""
    at = approval.expires_at if approval.status == "expired" else None
    at = approval.decided_at or at
    return f"{ending(approval, by)}, {ago(at, now)}" if at else ending(approval, by)


def ending(approval: Approval, by: str) -> str:
    """How an approval ended: `Allowed for this session by Anna`."""
    decision = approval.decision or {}
    words = OUTCOMES.get(decision.get("outcome", ""), STATUS[approval.status])
    if decision.get("respond"):
        words = "Answered in the tool's place"
    elif approval.decided_sha256:
        words = "Allowed with another input"
    elif scope := {"session": " for this session", "always": " always"}.get(decision.get("scope", "")):
        words += scope
    if decision.get("interrupt"):
        words += ", and the run ended,"
    if approval.status == "expired":
        return "Expired: nobody decided in time"
    return f"{words} by {by}"


def _short(text: str) -> str:
    shown = visible_lines(text)
    if len(shown) <= _SNIPPET:
        return shown
    return f"{shown[:_SNIPPET]}… ({len(shown) - _SNIPPET} more characters)"
