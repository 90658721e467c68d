"""A card: one approval with its evidence and every possible decision."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flask import request

from api.desk import waiting_list
from api.desk.rendering import fields
from api.desk.rendering.evidence import evidence
from api.desk.rendering.story import Entry, entry
from api.desk.rendering.tree import tree
from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import Misfilled
from api.door.framed import FramedPage, query_value
from api.door.paging import Selection
from api.v1 import grants
from api.v1.approvals import responses
from api.v1.approvals.visible import find, lock_approval, only_own
from models.audit.acts import Audit
from models.database import clock
from models.database.rows import Db
from models.errors import Refusal
from models.flow.judge.approvers import who_may_decide
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.pure import policy
from models.pure.quorum import Quorum
from models.session.approval import sentences
from models.session.approval.grant import Grant, rule_for
from models.session.approval.offers import offer_now
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.event.log import EventFilter, events_before
from models.session.event.tasks import tasks_of
from models.session.row import Session
from models.session.tool_call.row import ToolCall
from models.workspace.roster import has_sub_agents

_STORY_ENTRIES = 12
"""The most entries of the session's story on a card."""
_SEARCHED = 500
"""Number of earlier approvals that are searched for decisions about the same tool."""
_SHOWN_DECISIONS = 5
_MOST_TASK = 1000
"""Most characters of a sub-agent's task."""


@dataclass(frozen=True)
class CardQuestion:
    """One question of a tool."""

    key: str
    message: str
    fields: list[fields.Field]
    url: str = ""
    """A page to visit instead of fields to fill in."""

    @property
    def is_link(self) -> bool:
        """True if the page's address may be a link."""
        return self.url.lower().startswith(("https://", "http://"))


@page("/inbox/approvals/<approval_id>", "inbox", "own or read")
def card(db: Db, person: PersonPrincipal, approval_id: str, refusal: Refusal | None = None) -> FramedPage:
    """Show the card."""
    return drawn(db, person, find(db, person, approval_id), refusal=refusal)


@action("/inbox/approvals/<approval_id>/reveal", "reveal")
def reveal(db: Db, person: PersonPrincipal, approval_id: str) -> FramedPage:
    """Show the card with its secrets, and audit that."""
    locked, approval = lock_approval(db, person, approval_id)
    locked.note("approval.revealed", approval.id, input_sha256=approval.input_sha256)
    return drawn(db, person, approval, revealed=True)


def drawn(
    db: Db,
    person: PersonPrincipal,
    approval: Approval,
    *,
    revealed: bool = False,
    refusal: Refusal | None = None,
) -> FramedPage:
    """Return the card as a page. After a refusal: with the refusal on top, or with the faults beside the form's fields."""
    faults = refusal.faults if isinstance(refusal, Misfilled) else {}
    session = db.get_one(Session, approval.session_id)
    before = _decided_before(db, person, approval)
    cast = Vote.of(db, [approval.id])[approval.id]
    names = Names.of(db, [approval.decided_by, *(row.decided_by for row in before)])
    now = clock.now(db)
    waits = approval.status == "pending"
    values = matter(db, session, approval, waiting_list.look(db, approval), revealed=revealed)
    return FramedPage(
        "card/card.html",
        **values,
        questions=questions(approval),
        outcome="" if waits else sentences.outcome(approval, names[approval.decided_by], now),
        story=_story(db, session, approval),
        before=[(row, sentences.title(row), sentences.outcome(row, names[row.decided_by], now)) for row in before],
        notice=waiting_list.decision_notice(db, person, now),
        votes=_votes(db, approval, cast) if waits else None,
        why_not=waiting_list.why_not(db, person, approval, cast) if waits else None,
        may_deny=waits and any(vote.person_id == person.person_id for vote in cast),
        place=waiting_list.position(db, person, approval) if waits else None,
        may_reveal=bool(values["shown"].masked) and "reveal" in person.scopes,
        refusal=str(refusal) if refusal and not faults else "",
        faults=faults,
        form=request.form,
        opened=query_value("open"),
    )


def matter(db: Db, session: Session, approval: Approval, seen: dict[str, Any] | None, *, revealed: bool = False) -> dict[str, Any]:
    """Return the values of `matter.html`: the question and its evidence. `seen`: as `waiting_list.seen` returns it."""
    call = db.get(ToolCall, approval.tool_call_id) if approval.tool_call_id else None
    started = db.first(Audit, "WHERE chain = %(chain)s AND action = 'session.created'", chain=session.id)
    response = responses.Approval.of(db, approval, responses.Beside(_grant(db, approval, clock.now(db))), reveal=revealed)
    agent, thread, offer = approval.path(db), approval.thread(db), offer_now(db, session, approval)
    return {
        "approval": approval,
        "offer": offer,
        "covers": policy.covers(rule_for(approval, offer.widest)) if approval.traits.asks_to_run else "",
        "shown": response,
        "headline": sentences.headline(approval, agent),
        "agent": agent,
        "thread": thread,
        "task": sentences.shortened(tasks_of(db, [(session.id, approval.thread_id)]).get(approval.thread_id, ""), _MOST_TASK),
        "has_sub_agents": has_sub_agents(session.configured(db)),
        "session": session,
        "started_by": Names.of(db, [started.principal])[started.principal] if started else "",
        "evidence": evidence(approval.tool, response.input, seen, ours=call is not None and call.kind == "builtin"),
        "claims": tree(approval.annotations) if approval.annotations else None,
        "afterwards": sentences.afterwards(approval),
        "revealed": revealed,
    }


def _votes(db: Db, approval: Approval, cast: Sequence[Vote]) -> dict[str, Any] | None:
    """Return the votes so far, and who may vote; None if anybody with the role decides alone."""
    if not Quorum.of(approval.quorum).needs_people:
        return None
    names = Names.of(db, [f"user:{id_}" for vote in cast for id_ in (vote.person_id, vote.for_person_id)])
    lines = []
    for vote in cast:
        by, right = names[f"user:{vote.person_id}"], names[f"user:{vote.for_person_id}"]
        lines.append(f"{by}{f' for {right}' if right != by else ''}: {vote.result}")
    return {"summary": sentences.votes(approval, cast), "who": who_may_decide(db, approval), "cast": lines}


def questions(approval: Approval) -> list[CardQuestion]:
    """Return the tool's questions as forms."""
    result = []
    for i, (key, question) in enumerate((approval.shown("questions") or {}).items()):
        parts = fields.fields(question["schema"], {}, f"q{i}") if "schema" in question else []
        result.append(CardQuestion(key, question["message"], parts, question.get("url", "")))
    return result


def _grant(db: Db, approval: Approval, now: Any) -> grants.Grant | None:
    if not (approval.decision or {}).get("scope"):
        return None
    grant = db.first(Grant, "WHERE approval_id = %(id)s AND created_at = %(at)s", id=approval.id, at=approval.decided_at)
    return grants.Grant.of(grant, now, approval.offer) if grant else None


def _decided_before(db: Db, person: PersonPrincipal, approval: Approval) -> list[Approval]:
    """Return the last decisions of people about this tool of this agent that the person may see."""
    recent = "SELECT id FROM approval WHERE created_at <= %(at)s ORDER BY created_at DESC, id DESC LIMIT %(most)s"
    these = f"id IN ({recent}) AND id <> %(this)s AND tool = %(tool)s AND agent_id = %(agent)s"
    these += " AND status IN ('allowed', 'denied', 'answered')"
    values = {
        "at": approval.created_at,
        "most": _SEARCHED,
        "tool": approval.tool,
        "agent": approval.agent_id,
        "this": approval.id,
    }
    selection = only_own(db, person, Selection(Approval).where(these, **values), "id")
    return selection.select(db, f"ORDER BY decided_at DESC LIMIT {_SHOWN_DECISIONS}")


def _story(db: Db, session: Session, approval: Approval) -> list[Entry]:
    """Return the last messages and calls of the thread that asks."""
    rows, _ = events_before(db, EventFilter(session, approval.thread_id), None, 4 * _STORY_ENTRIES)
    entries = [entry(row.seq, row.shown(whole=False, thread_id=approval.thread_id)) for row in reversed(rows)]
    return [one for one in entries if one is not None and "note" not in one.css][-_STORY_ENTRIES:]


def edited_fields(approval: Approval) -> list[fields.Field]:
    """Return the fields of the edit form, from the tool's schema and the masked input."""
    return fields.fields(approval.input_schema or {}, shown_input(approval), "input")


def shown_input(approval: Approval) -> dict[str, Any]:
    """Return the input with its secrets masked."""
    masked = approval.masked
    visible_input: dict[str, Any] = masked.arguments if masked.paths else json.loads(approval.input)
    return visible_input
