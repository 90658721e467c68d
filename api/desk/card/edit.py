"""The page on which a person edits a call's input and allows the call, as a form or as JSON; or another amount of money.

People type an amount in dollars. The decision has whole cents, as the API does.
"""

from typing import Any

from flask import request

from api.desk.card import card
from api.desk.card.deciding import decide_by_form, onwards
from api.desk.rendering import fields
from api.desk.rendering.diff import changed_fields
from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import Misfilled, text
from api.door.framed import FramedPage, query_value
from api.v1.approvals.visible import find, lock_approval
from models.database.rows import Db
from models.errors import Forbidden, Invalid, Refusal
from models.people.principal import PersonPrincipal
from models.pure.json.canonical import canonical_text
from models.pure.pricing.prices import cents_in, dollars_of
from models.session.approval import sentences
from models.session.approval.kinds import budget
from models.session.approval.offers import offer_now
from models.session.approval.row import Approval
from models.session.row import Session

_MOST_CENTS = 999_999_999_999
"""The schema of an amount allows as many digits."""


@page("/inbox/approvals/<approval_id>/edit", "inbox", "approvals")
def edit_form(db: Db, person: PersonPrincipal, approval_id: str, refusal: Refusal | None = None) -> FramedPage:
    """Show the input as a form, or as JSON."""
    approval = find(db, person, approval_id)
    session = db.get_one(Session, approval.session_id)
    if why := offer_now(db, session, approval).why_not(approval.tool, "edit"):
        raise Forbidden(why)
    if approval.traits.is_amount:
        return _amount_form(approval, refusal)
    faults = refusal.faults if isinstance(refusal, Misfilled) else {}
    as_json = (request.form.get("as") or query_value("as")) == "json"
    parts = card.edited_fields(db, approval)
    return FramedPage(
        "card/edit.html",
        approval=approval,
        headline=sentences.headline(approval, approval.path(db)),
        as_json=as_json,
        fields=fields.refilled(parts, request.form) if request.form else parts,
        json=request.form.get("json") or fields.pretty(card.shown_input(approval)),
        masked=approval.masked.paths,
        may_see="reveal" in person.scopes,
        faults=faults,
        refusal=str(refusal) if refusal and not faults else "",
    )


@action("/inbox/approvals/<approval_id>/edit/change", "approvals", again=edit_form)
def show_change(db: Db, person: PersonPrincipal, approval_id: str) -> FramedPage:
    """Show the form again, with what the person has changed. Decides nothing."""
    edited = _edited(db, find(db, person, approval_id))
    form = edit_form(db, person, approval_id)
    form.values["changes"] = changed_fields(card.shown_input(form.values["approval"]), edited)
    return form


@action("/inbox/approvals/<approval_id>/edit", "approvals", again=edit_form)
def edit(db: Db, person: PersonPrincipal, approval_id: str) -> str:
    """Allow the call with another input."""
    locked, approval = lock_approval(db, person, approval_id)
    decide_by_form(locked, approval, {"result": "allow", "updated_input": _edited(db, approval)})
    return onwards(db, person, approval)


def _edited(db: Db, approval: Approval) -> dict[str, Any]:
    """Return the input that the form holds. Raises Misfilled with the faults of its fields, Invalid for an unchanged input."""
    if approval.traits.is_amount:
        return _typed_amount(approval)
    if request.form.get("as") == "json":
        try:
            value = fields.loads(text("json"))
        except ValueError as error:
            raise Misfilled({"json": str(error)}) from None
        if not isinstance(value, dict):
            raise Misfilled({"json": "must be a JSON object: {…}."})
    else:
        form = fields.read(request.form, card.edited_fields(db, approval))
        if form.faults:
            raise Misfilled(form.faults)
        value = form.values
    assert isinstance(value, dict)
    if canonical_text(value) == canonical_text(card.shown_input(approval)):
        raise Invalid("", "This is the input as it was. Change it, or allow the call once.")
    return value


def _amount_form(approval: Approval, refusal: Refusal | None) -> FramedPage:
    """Return the form of an amount, with the one that was asked for, or with the refused text and its fault."""
    faults = refusal.faults if isinstance(refusal, Misfilled) else {}
    is_budget = approval.tool == budget.TOOL
    return FramedPage(
        "card/amount.html",
        approval=approval,
        label="Raise the budget by" if is_budget else "Let it spend more, up to",
        amount=request.form.get("amount") or f"{dollars_of(_cents(approval)):.2f}",
        fault=faults.get("amount", ""),
        refusal=str(refusal) if refusal and not faults else "",
    )


def _typed_amount(approval: Approval) -> dict[str, Any]:
    """Return the decision's input with the amount that a person typed. Raises Misfilled."""
    try:
        cents = cents_in(request.form.get("amount", ""))
    except ValueError:
        raise Misfilled({"amount": "Write US dollars with at most two decimals, such as 12.50."}) from None
    if not 0 < int(cents) <= _MOST_CENTS:
        raise Misfilled({"amount": f"Write more than $0, and at most ${dollars_of(str(_MOST_CENTS)):,.2f}."})
    if cents == _cents(approval):
        raise Misfilled({"amount": "This is the amount that was asked for. Change it, or go back and allow it."})
    return approval.masked.arguments | {"amount": cents}


def _cents(approval: Approval) -> str:
    return str(approval.masked.arguments["amount"])
