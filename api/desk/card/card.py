"""A card: one approval with its evidence and every possible decision."""

import json
from dataclasses import dataclass
from typing import Any

from flask import request

from api.desk import waiting_list
from api.desk.card.matter import decided_before, matter, reasons, so_far
from api.desk.rendering import fields
from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import Misfilled
from api.door.framed import FramedPage, query_value
from api.v1.approvals.visible import find, lock_approval, sees_all
from models.briefing.arguments import schema_of
from models.briefing.panel import Panel
from models.briefing.precedent import Precedent
from models.database import clock
from models.database.rows import Db
from models.errors import Refusal
from models.flow.judge.approvers import who_may_decide
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.pure.json.property_order import in_order
from models.session.approval import sentences
from models.session.approval.decider import Decider
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.row import Session
from models.workspace import denial_reasons

_SHOWN_DECISIONS = 5


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
    cast = Vote.of(db, [approval.id])[approval.id]
    names = Names.of(db, [approval.decided_by])
    now = clock.now(db)
    waits = approval.status == "pending"
    why_not = waiting_list.why_not(db, person, approval, cast) if waits else None
    decider = None if sees_all(person) else Decider.of(db, person.person_id, now)
    precedent = Precedent.of(db, approval, decider)
    values = matter(db, approval, waiting_list.look(db, approval), precedent, revealed=revealed)
    return FramedPage(
        "card/card.html",
        **values,
        **reasons(db, approval),
        precedent=precedent,
        questions=questions(approval),
        outcome="" if waits else sentences.outcome(approval, names[approval.decided_by], now),
        story=so_far(db, session, approval),
        before=decided_before(db, precedent.newest[:_SHOWN_DECISIONS], now) if precedent else [],
        notices=waiting_list.decision_notices(db, person, now),
        panel=Panel.of_approval(db, approval, cast),
        votes=sentences.votes(approval, cast),
        who_may="" if why_not or not waits else who_may_decide(db, approval, on_page=True),
        why_not=why_not,
        may_deny=waits and any(vote.person_id == person.person_id for vote in cast),
        place=waiting_list.position(db, person, approval) if waits else None,
        may_reveal=bool(values["shown"].masked) and "reveal" in person.scopes,
        reasons=denial_reasons.of(db) if waits else (),
        refusal=str(refusal) if refusal and not faults else "",
        faults=faults,
        form=request.form,
        opened=query_value("open"),
    )


def questions(approval: Approval) -> list[CardQuestion]:
    """Return the tool's questions as forms."""
    result = []
    for i, (key, question) in enumerate((approval.shown("questions") or {}).items()):
        parts = fields.fields(in_order(question["schema"], {}), {}, f"q{i}") if "schema" in question else []
        result.append(CardQuestion(key, question["message"], parts, question.get("url", "")))
    return result


def edited_fields(db: Db, approval: Approval) -> list[fields.Field]:
    """Return the fields of the edit form, from the tool's schema and the masked input."""
    return fields.fields(schema_of(db, approval), shown_input(approval), "input")


def shown_input(approval: Approval) -> dict[str, Any]:
    """Return the input with its secrets masked."""
    masked = approval.masked
    visible_input: dict[str, Any] = masked.arguments if masked.paths else json.loads(approval.input)
    return visible_input
