"""Approvals in sentences."""

from collections.abc import Sequence
from datetime import datetime

from models.pure.json.canonical import digest
from models.pure.quorum import Quorum
from models.pure.text.relative_time import ago
from models.pure.text.visible import visible_lines
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.settings import settings

MOST_SNIPPET = 240
"""Most characters in a line of a list."""

_WISHES = {
    "bash": ("Run shell command: ", "wants to run a shell command"),
    "edit": ("Edit file: ", "wants to edit a file"),
    "write": ("Write file: ", "wants to write a file"),
    "read": ("Read file: ", "wants to read a file"),
    "glob": ("List files matching: ", "wants to list files"),
    "grep": ("Search files for: ", "wants to search files"),
}
"""By built-in tool: how its prompt begins, and the end of a sentence that begins with the agent's name."""

_AFTERWARDS = {
    "deny": "If nobody decides, the call is denied.",
    "end_run": "If nobody decides, the run ends.",
    "escalate": "If nobody decides, others are asked.",
    "allow": "If nobody decides, the call is allowed.",
}
_OUTCOMES = {
    "rerun": "Sent to run again",
    "happened": "Confirmed as done",
}


def headline(approval: Approval, agent: str, tool: str = "") -> str:
    """Return the card's question, as a sentence. `tool`: the tool's name for people, if it has one."""
    if headline := approval.traits.headline:
        return headline.format(agent=agent, tool=tool or approval.tool)
    if tool and approval.prompt == f"Run {approval.tool}":
        return f"{agent} wants to run {tool}"
    return f"{agent} {_WISHES[approval.tool][1]}" if is_standard(approval) else approval.prompt


def title(approval: Approval) -> tuple[str, str]:
    """Return the two parts of a line in a list: the question, and its code, such as a command."""
    if is_standard(approval):
        start = _WISHES[approval.tool][0]
        return start.removesuffix(": "), shortened(approval.prompt.removeprefix(start))
    return shortened(approval.prompt), ""


def is_standard(approval: Approval) -> bool:
    """True if the prompt is that of a built-in tool, which names the tool."""
    return approval.tool in _WISHES and approval.prompt.startswith(_WISHES[approval.tool][0])


def afterwards(approval: Approval) -> str:
    """Return the effect of the present deadline, as a sentence."""
    return approval.traits.afterwards or _AFTERWARDS[approval.deadline_effect]


def votes(approval: Approval, cast: Sequence[Vote]) -> str:
    """Return how many of the required people have allowed the call; empty if one person is enough."""
    needed = Quorum.of(approval.quorum).required_people
    return f"{sum(vote.result == 'allow' for vote in cast)} of {needed} people have allowed it" if needed > 1 else ""


def outcome(approval: Approval, by: str, now: datetime) -> str:
    """Return how and when an approval ended: `Allowed for this session by Anna, 2 minutes ago`."""
    at = approval.decided_at or (approval.expires_at if approval.status == "expired" else None)
    return f"{ending(approval, by)}, {ago(at, now)}" if at else ending(approval, by)


def ending(approval: Approval, by: str) -> str:
    """Return how an approval ended: `Allowed for this session by Anna`."""
    if approval.status == "expired":
        return "Expired: nobody decided in time"
    decision = approval.decision or {}
    words = _OUTCOMES.get(decision.get("outcome", ""), approval.state.word.capitalize())
    if decision.get("respond"):
        words = "Answered in the tool's place"
    elif is_declined(approval):
        words = "Declined"
    elif approval.decided_sha256:
        words = f"Allowed with another {'amount' if approval.traits.is_amount else 'input'}"
    elif scope := {"session": " for this session", "always": " always"}.get(decision.get("scope", "")):
        words += scope
    if decision.get("interrupt"):
        words += ", and the run ended,"
    return f"{words} by {by}"


def is_declined(approval: Approval) -> bool:
    """True if a person declined each of the tool's questions. False once the hash of the replies is erased."""
    replies = {key: {"action": "decline"} for key in approval.questions or {}}
    return bool(replies) and (approval.decision or {}).get("answers_sha256") == digest(replies)


def page_of(approval_id: str) -> str:
    """Return the address of an approval's card in the inbox, which asks for a sign-in."""
    return f"{settings().public_url.rstrip('/')}/inbox/approvals/{approval_id}"


def shortened(text: str, limit: int = MOST_SNIPPET) -> str:
    """Return the text without invisible characters. A text beyond the limit is cut, and says how much is left out."""
    visible = visible_lines(text)
    return visible if len(visible) <= limit else f"{visible[:limit]}… ({len(visible) - limit} more characters)"
