"""Decisions about one approval, and a later deadline.

Each form carries the hash of the input that it showed, so that nobody decides another input.
"""

from typing import Any

from flask import request

from api.desk import waiting_list
from api.desk.card import card
from api.desk.card.verbs import VERBS
from api.desk.shell.blueprint import action
from api.desk.shell.forms import Misfilled
from api.door.pages import local
from api.door.parsing import validated
from api.v1.approvals.requests import DecisionBody, ExtendBody
from api.v1.approvals.visible import lock_approval
from models.database.rows import Db
from models.errors import Conflict, Invalid
from models.flow.decide import decisions
from models.people.principal import PersonPrincipal
from models.session.approval import deadline as approval_deadline
from models.session.approval.row import Approval
from models.session.locked import Locked


@action("/inbox/approvals/<approval_id>/decision", "approvals", again=card.card)
def decide(db: Db, person: PersonPrincipal, approval_id: str) -> str:
    """Decide the approval of a card, by the form's button."""
    locked, approval = lock_approval(db, person, approval_id)
    verb = request.form.get("do") or ("deny" if request.form.get("reason") else "")
    if verb not in VERBS:
        raise Invalid("do", f"must be one of {', '.join(VERBS)}.")
    decide_by_form(locked, approval, VERBS[verb](approval))
    return onwards(db, person, approval)


@action("/inbox/approvals/<approval_id>/extend", "approvals", again=card.card)
def extend(db: Db, person: PersonPrincipal, approval_id: str) -> str:
    """Move the deadline."""
    locked, approval = lock_approval(db, person, approval_id)
    seconds = request.form.get("seconds", "")
    body = validated(ExtendBody, {"seconds": seconds}, strict=False)
    try:
        approval_deadline.extend(locked, approval, body.seconds)
    except Conflict as refusal:
        if "expires_at" not in (refusal.winner or {}):
            raise
        raise Misfilled({"seconds": "The deadline is later than that already."}) from None
    return f"/inbox/approvals/{approval.id}"


def decide_by_form(locked: Locked, approval: Approval, values: dict[str, Any]) -> None:
    """Decide as the HTTP route does, bound to the hash that the form carries."""
    body = validated(DecisionBody, values | {"expected_input_sha256": request.form.get("sha256", "")}, strict=False)
    decisions.decide(locked, approval, body.decision())


def onwards(db: Db, person: PersonPrincipal, approval: Approval) -> str:
    """Return the address after a decision: the list with the form, or the next card."""
    if back := request.form.get("back"):
        return local(back)
    held_ids = request.form.get("held", "").split()
    return waiting_list.address_of_next(db, person, notice_of=approval.id, held_ids=held_ids)
