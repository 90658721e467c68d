"""What an approval asks, and what helps to judge it: the values of `matter.html`.

Whoever has a link's address reads its page, so that shows `matter` alone. A card has `reasons` and the precedent as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.desk.rendering.diff import ChangedField, changed_amount, changed_fields
from api.desk.rendering.evidence import evidence
from api.desk.rendering.story import Entry, entry
from api.desk.rendering.tree import tree
from api.v1 import grants
from api.v1.approvals import responses
from models.briefing.arguments import schema_of
from models.briefing.because import because
from models.briefing.changes import changes_since
from models.briefing.outcome import CallOutcome, outcomes_of
from models.briefing.precedent import Precedent
from models.briefing.reasons import MOST_SHOWN, Reasons
from models.briefing.stakes import Stakes
from models.database import clock
from models.database.rows import Db
from models.people.names import Names
from models.pure import policy
from models.pure.quorum import Quorum
from models.session.approval import sentences
from models.session.approval.grant import Grant, rule_for
from models.session.approval.grant_use import uses_of
from models.session.approval.offers import offer_now
from models.session.approval.row import Approval
from models.session.event.log import EventFilter, events_before
from models.session.event.tasks import tasks_of
from models.session.row import Session
from models.session.tool_call.row import ToolCall
from models.workspace.roster import has_sub_agents

_STORY_ENTRIES = 12
"""The most entries of the session's story on a card."""
_MOST_LINE = 140


@dataclass(frozen=True)
class StoryLine:
    """One entry of the session's story in a line, which unfolds if there is more."""

    id: str
    css: str
    who: str
    line: str
    rest: str
    """The whole entry; empty if the line has it."""

    @classmethod
    def of(cls, entry: Entry) -> "StoryLine":
        """Return the line of an entry."""
        whole = "\n".join(text for text in (entry.text, entry.code) if text)
        line = " · ".join(part for part in (entry.text.split("\n", 1)[0], entry.code.split("\n", 1)[0]) if part)
        is_cut = len(line) > _MOST_LINE or whole.count("\n") > bool(entry.text and entry.code)
        return cls(entry.id, entry.css, entry.who, f"{line[:_MOST_LINE]}…" if is_cut else line, whole if is_cut else "")


def matter(
    db: Db, approval: Approval, look: dict[str, Any] | None, precedent: Precedent | None, *, revealed: bool = False
) -> dict[str, Any]:
    """Return what a card and the page of a link show. `look`: as `waiting_list.seen` returns it."""
    session = db.get_one(Session, approval.session_id)
    call = db.get(ToolCall, approval.tool_call_id) if approval.tool_call_id else None
    response = responses.Approval.of(db, approval, responses.Beside(_grants(db, approval, clock.now(db))), reveal=revealed)
    agent, thread, offer = approval.path(db), approval.thread(db), offer_now(db, session, approval)
    ours = call is not None and call.kind == "builtin"
    stakes = Stakes.of(db, approval)
    return {
        "stakes": stakes,
        "chips": stakes.chips(is_first=precedent is not None and precedent.is_first) if stakes else [],
        "changes": changes_since(db, approval),
        "call_outcome": call_outcome(db, approval),
        "approval": approval,
        "offer": offer,
        "covers": policy.covers(rule_for(approval, offer.widest)) if approval.traits.asks_to_run else "",
        "shown": response,
        "headline": sentences.headline(approval, agent, stakes.tool if stakes else ""),
        "agent": agent,
        "thread": thread,
        "task": sentences.shortened(tasks_of(db, [(session.id, approval.thread_id)]).get(approval.thread_id, ""), MOST_SHOWN),
        "has_sub_agents": has_sub_agents(session.configured(db)),
        "session": session,
        "started_by": session.starter(db),
        "evidence": evidence(approval.tool, response.input, look, schema_of(db, approval), ours=ours),
        "edits": _edits(approval, response),
        "claims": tree(approval.annotations) if approval.annotations else None,
        "is_decided_alone": not Quorum.of(approval.quorum).needs_people,
        "afterwards": sentences.afterwards(approval),
        "because": because(approval.rule),
        "revealed": revealed,
    }


def _edits(approval: Approval, response: responses.Approval) -> list[ChangedField]:
    """Return what a person changed in the input, if somebody did."""
    if response.decided_input is None:
        return []
    return (changed_amount if approval.traits.is_amount else changed_fields)(response.input, response.decided_input)


def reasons(db: Db, approval: Approval) -> dict[str, Any]:
    """Return what only a card shows: the agent's last words, and the messages of the session before and after the question."""
    why = Reasons.of(db, approval)
    return {
        "last_words": sentences.shortened(why.last_words, MOST_SHOWN),
        "message": why.request,
        "message_text": sentences.shortened(why.request.text, MOST_SHOWN) if why.request else "",
        "since": why.since if approval.status == "pending" else None,
    }


def call_outcome(db: Db, approval: Approval) -> CallOutcome | None:
    """Return what came of the call that a person let run; None while it waits for people, and if it was not to run."""
    ran = approval.status == "allowed" or (approval.status == "answered" and approval.lets_run(approval.runs))
    return outcomes_of(db, [approval.tool_call_id]).get(approval.tool_call_id or "") if ran else None


def so_far(db: Db, session: Session, approval: Approval) -> list[StoryLine]:
    """Return the last messages and calls of the thread that asks, without the call that the card is about."""
    rows, _ = events_before(db, EventFilter(session, approval.thread_id), None, 4 * _STORY_ENTRIES)
    entries = [entry(row.seq, row.shown(whole=False, thread_id=approval.thread_id)) for row in reversed(rows)]
    others = [one for one in entries if one is not None and "note" not in one.css and one.id != approval.tool_call_id]
    return [StoryLine.of(one) for one in others[-_STORY_ENTRIES:]]


def decided_before(db: Db, approvals: Sequence[str], now: datetime) -> list[tuple[Approval, tuple[str, str], str]]:
    """Return these decided approvals in order, each with its title and how it ended."""
    rows = {row.id: row for row in db.find(Approval, "WHERE id = ANY(%(ids)s)", ids=list(approvals))} if approvals else {}
    names = Names.of(db, [row.decided_by for row in rows.values()])
    in_order = [rows[id_] for id_ in approvals if id_ in rows]
    return [(row, sentences.title(row), sentences.outcome(row, names[row.decided_by], now)) for row in in_order]


def _grants(db: Db, approval: Approval, now: datetime) -> list[grants.Grant]:
    if not (approval.decision or {}).get("scope"):
        return []
    rows = db.find(Grant, "WHERE approval_id = %(id)s AND created_at = %(at)s ORDER BY id", id=approval.id, at=approval.decided_at)
    uses = uses_of(db, [row.id for row in rows])
    return [grants.Grant.of(row, uses[row.id], now, approval.offer) for row in rows]
