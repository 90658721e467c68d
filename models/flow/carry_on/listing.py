"""The listing: a message of the conversation that says which decisions wait, in sessions with chat approvals.

People read it, and the model never does: it is an event alone, no part of a reply. Chat words refer to the newest listing.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from models.pure import policy
from models.pure.quorum import Quorum
from models.pure.text.relative_time import number_with_noun
from models.pure.text.visible import visible
from models.session.approval import sentences
from models.session.approval.face import MESSAGE, Face
from models.session.approval.grant import rule_for
from models.session.approval.row import Approval
from models.session.event.of_session import AgentMessage, OfApprovals
from models.session.locked import Locked

MOST_LISTED = 10
"""Most approvals of one listing. No word decides the others."""
OURS = "assent"
"""The field of an `agent.message` that the model did not write."""
_BAR = "| "
"""Stands before each line of a call, so that no line of a call looks like a line of the listing."""


@dataclass(frozen=True)
class Listed:
    """The newest listing of a session, if the conversation shows nothing newer."""

    at: datetime
    approval_ids: list[str]
    shown_inputs: dict[str, str]
    """The hashes of the inputs that the listing shows whole, by approval."""

    @classmethod
    def newest(cls, locked: Locked) -> "Listed | None":
        """Return the listing; None if the conversation shows something newer: a text, a result, a decision or a question."""
        rows = locked.db.rows(_NEWEST, session=locked.session.id, quiet=list(QUIET), ours=OURS)
        ours, at = rows[0] if rows else (None, None)
        if not ours or ours["kind"] != "waiting":
            return None
        return cls(at, ours["approval_ids"], ours["shown_inputs"])


QUIET = (
    *("session.status_idle", "session.updated", "session.usage", "approval.reminded"),
    *("session.thread_status_idle", "session.thread_status_terminated"),
)
"""Types of events that say nothing new about what waits."""
_NEWEST = """
    SELECT body -> %(ours)s, created_at
    FROM (SELECT seq, type, body, created_at FROM event WHERE session_id = %(session)s ORDER BY seq DESC LIMIT 100) recent
    WHERE type <> ALL(%(quiet)s) ORDER BY seq DESC LIMIT 1
"""


def is_stale(locked: Locked) -> bool:
    """True if approvals wait, and the conversation shows something newer than their listing."""
    return Listed.newest(locked) is None and bool(Approval.pending(locked.db, locked.session.id))


def list_waiting(locked: Locked, before: str = "") -> None:
    """Emit a message with the sentences `before` and a listing of the pending approvals. No-op if it would be empty.

    `session.status_idle` must follow in the same transaction, because the SDKs' runners expect it last.
    """
    pending = Approval.pending(locked.db, locked.session.id)
    first_ones = pending[:MOST_LISTED]
    parts = [before] if before else []
    if first_ones:
        entries = [_entry(locked, approval) for approval in first_ones]
        parts += [_heading(pending), *entries, _guide(locked, pending, first_ones)]
    if parts:
        shown_inputs = {approval.id: approval.runs for approval in first_ones if allowed_by_words(approval)}
        ids = [approval.id for approval in first_ones]
        say(locked, "\n\n".join(parts), {"kind": "waiting", "approval_ids": ids, "shown_inputs": shown_inputs})


def without_listings(message_text: str) -> str:
    """Return a text that a client sends back without the listings in it, which `list_waiting` wrote."""
    if _END not in message_text:
        return message_text
    own_lines: list[str] = []
    listing: list[str] | None = None
    for line in message_text.split("\n"):
        if listing is not None:
            listing.append(line)
            if line.endswith(_END) and not line.startswith(_BAR):
                listing = None
        elif _HEADINGS.fullmatch(line):
            listing = [line]
            if own_lines[-2:-1] and own_lines[-2].startswith(_BEFORE):
                del own_lines[-2:]
        else:
            own_lines.append(line)
    return "\n".join(own_lines + (listing or [])).strip()


def say(locked: Locked, words: str, about: OfApprovals) -> None:
    """Emit a message of the session's own conversation that the model did not write and never gets."""
    locked.tell(AgentMessage(type="agent.message", content=[{"type": "text", "text": words}], assent=about))


def by_words(approval: Approval) -> bool:
    """True if chat words may decide the approval at all: it is about a call that has not begun, and needs no signed-in people."""
    return approval.traits.asks_to_run and not Quorum.of(approval.quorum).needs_people


def allowed_by_words(approval: Approval) -> bool:
    """True if a chat word may allow the call: words decide it, its tool offers to allow once, and a listing shows it whole."""
    return by_words(approval) and approval.offer.has("once") and Face.of(approval, MESSAGE).is_whole


GrantKey = tuple[str, str, int]
"""A tool, and the agent whose calls of it a grant for the session covers."""


def grant_key(locked: Locked, approval: Approval) -> GrantKey:
    """Return what a grant for the session would cover that a decision about this approval gives."""
    thread = locked.at(approval).thread
    return (approval.tool, thread.id, 0) if thread.inline else (approval.tool, thread.agent_id, thread.agent_version)


def covered(locked: Locked, approvals: list[Approval], pending: list[Approval]) -> dict[GrantKey, str]:
    """Return what `approve all` for these approvals also allows from then on, in words, by tool and agent.

    A grant releases all pending calls that it covers. So a tool that offers grants gets one only if each of these is among
    `approvals`.
    """
    ids = {approval.id for approval in approvals}
    held_back = {grant_key(locked, approval) for approval in pending if approval.id not in ids and approval.traits.asks_to_run}
    grantable = [a for a in approvals if a.offer.gives("session", exact=False) and grant_key(locked, a) not in held_back]
    return {grant_key(locked, approval): _calls_covered(locked, approval) for approval in grantable}


def _calls_covered(locked: Locked, approval: Approval) -> str:
    calls = policy.covers(rule_for(approval, None))
    return f"{calls} by {approval.path(locked.db)}" if locked.has_threads else calls


def _heading(pending: list[Approval]) -> str:
    waits = f"{number_with_noun(len(pending), 'call')} {'waits' if len(pending) == 1 else 'wait'} for a decision:"
    return waits if all(approval.traits.asks_to_run for approval in pending) else "A decision is needed:"


def _entry(locked: Locked, approval: Approval) -> str:
    face = Face.of(approval, MESSAGE)
    asker = f"{approval.path(locked.db)}: " if approval.thread_id != locked.threads[0].id else ""
    lines = [asker + visible(" ".join(face.title.split())), *(_BAR + line for line in face.text.splitlines())]
    if not allowed_by_words(approval):
        lines.append(f"{_why_not(approval)} {sentences.page_of(approval.id)}")
    return "\n".join(lines)


def _why_not(approval: Approval) -> str:
    if not approval.traits.asks_to_run:
        return "No word decides this. Decide it here:"
    if not by_words(approval):
        return "Only people who sign in decide this. Decide it here:"
    if why := approval.offer.why_not(approval.tool, "once"):
        return f"{why} Decide it here:"
    return "This may not be all that would run, so no word allows it. Read and decide it here:"


def _guide(locked: Locked, pending: list[Approval], first_ones: list[Approval]) -> str:
    """Return which words decide what is listed, and the effect of other messages."""
    parts = []
    if len(pending) > len(first_ones):
        parts.append(f"{len(pending) - len(first_ones)} more are listed when these are decided.")
    by_one_word = [approval for approval in first_ones if allowed_by_words(approval)]
    if by_one_word:
        parts.append('Say "approve" or "reject".' if len(first_ones) == 1 else 'Say "approve all" or "reject".')
        if later := "; ".join(covered(locked, by_one_word, pending).values()):
            parts.append(f'"approve all" also allows, from then on in this session: {later}.')
    elif any(by_words(approval) for approval in first_ones):
        parts.append('Say "reject" to deny.')
    return " ".join([*parts, _END])


_END = "Anything else is sent to the agent when it goes on."
_HEADINGS = re.compile(r"[0-9]+ calls? waits? for a decision:|A decision is needed:")
_BEFORE = ("Nothing was decided: ", "Your message is sent to the agent ")
"""The beginnings of the sentences that may stand before a listing."""
