"""The answers to an approval: decisions, more time, and the pages on which an input is edited and a grant is given.

Each form carries the hash of the input that it showed, so that nobody decides what was not shown.
"""

from collections.abc import Callable, Mapping
from typing import Any

from flask import request

from api.bulk import NoneDecided, decide_all
from api.grants import would_release
from api.inbox import card, patterns, queue
from api.inbox.blueprint import inbox
from api.inbox.door import Page, action, page, shows, wants
from api.inbox.list import agent_name, index_page
from api.inbox.rendering import fields, sentences
from api.pages import local
from api.parsing import validated
from api.requests.approvals import DecisionBody, DecisionsBody, ExtendBody
from models import flow
from models.database.rows import Db
from models.errors import Conflict, Invalid, NotFound, Refusal
from models.people.principal import PersonPrincipal
from models.pure import policy
from models.pure.fitting import misfit
from models.session.approval import Approval
from models.session.grant import rule_for
from models.session.session import Session

Form = Mapping[str, Any]


class Misfilled(Invalid):
    """Fields of a form are not right; the page shows each fault beside its field."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__("", " ".join(faults.values()))
        self.faults = faults


def card_again(db: Db, person: PersonPrincipal, refusal: Refusal, approval_id: str) -> Page:
    """The card after a refusal."""
    faults = refusal.faults if isinstance(refusal, Misfilled) else {}
    return card.drawn(db, person, card.find(db, person, approval_id), refusal=refusal, faults=faults)


def edit_again(db: Db, person: PersonPrincipal, refusal: Refusal, approval_id: str) -> Page:
    """The page of the edit after a refusal."""
    return _edit_page(db, card.find(db, person, approval_id), refusal)


def always_again(db: Db, person: PersonPrincipal, refusal: Refusal, approval_id: str) -> Page:
    """The page of the grant after a refusal."""
    return _always_page(db, card.find(db, person, approval_id), request.form.get("match"), refusal)


@inbox.post("/inbox/approvals/<approval_id>/decision")
@action("approvals", again=card_again)
def decide(db: Db, person: PersonPrincipal, approval_id: str) -> str:
    """Decide what the card asks."""
    session, approval = _locked(db, person, approval_id)
    verb = request.form.get("do", "")
    if verb not in _VERBS:
        raise Invalid("do", f"must be one of {', '.join(_VERBS)}.")
    _decide(db, session, person, approval, _VERBS[verb](approval))
    return _onwards(db, person, approval)


@inbox.post("/inbox/approvals/<approval_id>/extend")
@action("approvals", again=card_again)
def extend(db: Db, person: PersonPrincipal, approval_id: str) -> str:
    """Move the deadline."""
    session, approval = _locked(db, person, approval_id)
    seconds = request.form.get("seconds", "")
    body = validated(ExtendBody, {"seconds": seconds}, strict=False)
    try:
        approval.extend(db, session, person, body.seconds)
    except Conflict as refusal:
        if "expires_at" not in (refusal.winner or {}):
            raise
        raise Misfilled({"seconds": "The deadline is later than that already."}) from None
    return f"/inbox/approvals/{approval.id}"


@inbox.get("/inbox/approvals/<approval_id>/edit")
@page("inbox", "approvals")
def edit_form(db: Db, person: PersonPrincipal, approval_id: str) -> Page:
    """The page on which the input is edited: as a form, or as JSON."""
    return _edit_page(db, card.find(db, person, approval_id))


@inbox.post("/inbox/approvals/<approval_id>/edit")
@action("approvals", again=edit_again)
def edit(db: Db, person: PersonPrincipal, approval_id: str) -> str:
    """Allow the call with another input."""
    session, approval = _locked(db, person, approval_id)
    _decide(db, session, person, approval, {"result": "allow", "updated_input": _edited(approval)})
    return _onwards(db, person, approval)


@inbox.get("/inbox/approvals/<approval_id>/always")
@page("inbox", "approvals")
def always_form(db: Db, person: PersonPrincipal, approval_id: str) -> Page:
    """The page on which a grant is given: each pattern with what it covers and how many waiting calls it releases."""
    return _always_page(db, card.find(db, person, approval_id), wants("match"))


@inbox.post("/inbox/approvals/<approval_id>/always")
@action("approvals", again=always_again)
def always(db: Db, person: PersonPrincipal, approval_id: str) -> str:
    """Allow the call, and those like it."""
    session, approval = _locked(db, person, approval_id)
    values = {name: request.form.get(name) for name in ("max_uses", "expires_in_seconds") if request.form.get(name)}
    match, scope = request.form.get("match"), request.form.get("scope")
    _decide(db, session, person, approval, {"result": "allow", "scope": scope, "match": match} | values)
    return _onwards(db, person, approval)


@inbox.post("/inbox/approvals/decisions")
@action("approvals", again=index_page)
def decide_several(db: Db, person: PersonPrincipal) -> str:
    """Decide several plain cards, all or none."""
    result = request.form.get("do")
    chosen = [mark.partition(" ")[::2] for mark in request.form.getlist("approval")]
    if not chosen:
        raise Invalid("approval", "choose at least one call.")
    items = [{"approval_id": id_, "result": result, "expected_input_sha256": sha256} for id_, sha256 in chosen]
    body = validated(DecisionsBody, {"decisions": items}, strict=False)
    try:
        decide_all(db, person, body.decisions)
    except NoneDecided as refusal:
        raise Conflict(str(refusal)) from refusal
    return local(request.form.get("back"))


def _locked(db: Db, person: PersonPrincipal, approval_id: str) -> tuple[Session, Approval]:
    """Its session, locked, and the approval as it is under the lock: only that decides."""
    session = flow.lock(db, card.find(db, person, approval_id).session_id)
    return session, db.get_one(Approval, approval_id, lock=True)


def _decide(db: Db, session: Session, person: PersonPrincipal, approval: Approval, values: dict[str, Any]) -> None:
    """Decide as the HTTP route does, bound to the hash that the form carries."""
    body = validated(DecisionBody, values | {"expected_input_sha256": request.form.get("sha256", "")}, strict=False)
    flow.decide(db, session, person, approval, body.decision())


def _onwards(db: Db, person: PersonPrincipal, approval: Approval) -> str:
    """Where the browser goes after a decision: back to the list that it came from, else to the next card."""
    if back := request.form.get("back"):
        return local(back)
    held = request.form.get("held", "").split()
    return queue.address_of_next(db, person, after=approval.id, decided=approval.id, held=held)


def _deny(_approval: Approval) -> dict[str, Any]:
    return {"result": "deny"} | _message()


def _end(_approval: Approval) -> dict[str, Any]:
    return {"result": "deny", "interrupt": True} | _message()


def _message() -> dict[str, Any]:
    text = _text("deny_message")
    return {"deny_message": text} if text.strip() else {}


def _respond(_approval: Approval) -> dict[str, Any]:
    return {"result": "allow", "respond": _needed("respond", "Write the result that the agent gets.")}


def _happened(_approval: Approval) -> dict[str, Any]:
    return {"outcome": "happened", "result": _needed("content", "Write the result that the agent gets.")}


def _rerun(_approval: Approval) -> dict[str, Any]:
    if request.form.get("sure") != "yes":
        raise Invalid("sure", "Mark that the call is to run again, though it may have taken effect.")
    return {"outcome": "rerun"}


def _answer(approval: Approval) -> dict[str, Any]:
    """The replies to what the tool asks. Raises Misfilled."""
    replies: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for i, question in enumerate(card.questions(approval)):
        if question.url:
            if request.form.get(f"q{i}.visited") != "yes":
                faults[f"q{i}"] = "Go there first and mark it, or decline."
            replies[question.key] = {"action": "accept"}
            continue
        filled = fields.read(request.form, question.fields)
        faults |= filled.faults
        replies[question.key] = {"action": "accept", "content": filled.values}
        schema = (approval.questions or {})[question.key]["schema"]
        if not filled.faults and (fault := misfit(schema, filled.values)):
            raise Invalid("", fault)
    if faults:
        raise Misfilled(faults)
    return {"result": "allow", "answers": replies}


def _decline(approval: Approval) -> dict[str, Any]:
    return {"result": "allow", "answers": {key: {"action": "decline"} for key in approval.questions or {}}}


def _text(name: str) -> str:
    """A text area's value. A browser sends every line end as CR LF."""
    return request.form.get(name, "").replace("\r\n", "\n")


def _needed(name: str, remedy: str) -> str:
    text = _text(name)
    if not text.strip():
        raise Misfilled({name: remedy})
    return text


_VERBS: dict[str, Callable[[Approval], dict[str, Any]]] = {
    "allow": lambda _approval: {"result": "allow"},
    "session": lambda _approval: {"result": "allow", "scope": "session", "match": "tool"},
    "deny": _deny,
    "end": _end,
    "respond": _respond,
    "answer": _answer,
    "decline": _decline,
    "happened": _happened,
    "rerun": _rerun,
    "give_up": lambda _approval: {"outcome": "give_up"},
}
"""By the value of the button."""


def _edited(approval: Approval) -> dict[str, Any]:
    """The input that the form gives. Raises Misfilled with the faults of its fields."""
    if request.form.get("as") == "json":
        try:
            value = fields.loads(_text("json"))
        except ValueError as error:
            raise Misfilled({"json": str(error)}) from None
        if not isinstance(value, dict):
            raise Misfilled({"json": "must be a JSON object: {…}."})
    else:
        filled = fields.read(request.form, card.edited_fields(approval))
        if filled.faults:
            raise Misfilled(filled.faults)
        value = filled.values
    assert isinstance(value, dict)
    if fields.pretty(value) == fields.pretty(card.shown_input(approval)):
        raise Invalid("", "This is the input as it was. Change it, or allow the call once.")
    return value


def _edit_page(db: Db, approval: Approval, refusal: Refusal | None = None) -> Page:
    session = db.get_one(Session, approval.session_id)
    faults = refusal.faults if isinstance(refusal, Misfilled) else {}
    as_json = (request.form.get("as") or wants("as")) == "json"
    parts = card.edited_fields(approval)
    return shows(
        "edit.html",
        approval=approval,
        headline=sentences.headline(approval, agent_name(db, session)),
        as_json=as_json,
        fields=fields.refilled(parts, request.form) if request.form else parts,
        json=request.form.get("json") or fields.pretty(card.shown_input(approval)),
        masked=approval.masked.paths,
        faults=faults,
        refusal=str(refusal) if refusal and not faults else "",
    )


def _always_page(db: Db, approval: Approval, match: str | None, refusal: Refusal | None = None) -> Page:
    if approval.kind != "tool_call":
        raise NotFound("grant", "of a call that has begun")
    session = db.get_one(Session, approval.session_id)
    known = ["exact", *patterns.suggested(approval), "tool"]
    own = match if match and match not in known else None
    fault = ""
    options = []
    for spelled in [*([own] if own else []), *known]:
        try:
            options.append(_option(db, approval, spelled))
        except Invalid as problem:
            fault = str(problem)
    return shows(
        "always.html",
        approval=approval,
        headline=sentences.headline(approval, agent_name(db, session)),
        title=sentences.title(approval),
        options=options,
        chosen=match if match in {option["match"] for option in options} else options[0]["match"],
        own=own or "",
        fault=fault,
        refusal=str(refusal) if refusal and not fault else "",
        form=request.form,
    )


def _option(db: Db, approval: Approval, match: str) -> dict[str, Any]:
    """One pattern: what it covers, and how many waiting calls it releases here and in all sessions of the agent."""
    rule = rule_for(approval, match)
    return {
        "match": match,
        "spelled": policy.spelled_rule(rule)["match"],
        "covers": policy.covers(rule),
        "session": would_release(db, approval, rule, "session"),
        "always": would_release(db, approval, rule, "always"),
    }
