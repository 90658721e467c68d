"""The page of a message's link: it shows one approval to one person, and decides with the six-digit code of the message.

    GET  /link/TOKEN     shows the question, and changes nothing; for an hour after a decision in this browser, what comes of it
    POST /link/TOKEN     decides: `code`, `do` with `allow` or `deny`, and perhaps `deny_message`

Programs open links and even submit forms, so a token alone decides nothing. An unknown, a malformed and a used token get the same
page. The link's person who is signed in goes on to the card, which takes every decision.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from flask import Blueprint, Response, g, render_template, request

from api.desk import waiting_list
from api.desk.card.matter import matter
from api.desk.shell.forms import text
from api.door import browser, client, errors, limits, pages
from api.door.parsing import validated
from api.door.routes import HTML
from api.v1.approvals.requests import DecisionBody
from api.v1.approvals.visible import may_see
from models.audit.principal import Principal
from models.briefing.precedent import Precedent
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid, NotFound, Refusal
from models.flow.decide import links as by_link
from models.flow.decide.deadlines import transact_in_time
from models.flow.lock import lock
from models.notices import link
from models.notices.link import Link
from models.people.confirming import principal_of
from models.people.names import Names
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.pure.key_secret import sha256
from models.pure.text.relative_time import number_with_noun
from models.session.approval import sentences
from models.session.approval.deadline import overdue
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.row import Session
from models.workspace.halt import Halt

links = Blueprint("links", __name__)

HEADERS = pages.HEADERS | {"referrer-policy": "no-referrer", "x-robots-tag": "noindex, nofollow"}
"""Headers of every response. No other page learns the address, and no search engine keeps the page."""
FOLLOWED_SECONDS = 3600
"""How long the browser that has decided at a link may look at what comes of it, as `assent_find_link` allows."""
_COOKIE = "__Host-assent-link"
"""Of the link at which this browser decided last: the beginning of the hash of its token, and its code."""
_UNUSABLE = (
    "It is wrong, incomplete or too old, or it was used before. If you decided with it, your decision holds. "
    "Sign in to see everything that waits for you."
)
_NOT_YOURS = "You are not, or no longer, one of the people who decide this."
_STATUS = {"sign_in": 403, "not_yours": 403, "changed": 409, "over": 409, "decided": 409}
"""Status of the response to a form that decided nothing, by the link's state."""
_ATTEMPT = "open a link"


@dataclass(frozen=True)
class View:
    """A link's present state, and the values that its page shows."""

    state: by_link.State | Literal["not_yours"]
    values: dict[str, Any]


pages.install(links, "shell/failure.html", headers=HEADERS)


@links.errorhandler(link.UsedUp)
def refuse_link(_refusal: link.UsedUp) -> Response:
    """Show the same page for every link that cannot be used."""
    return pages.failed("shell/failure.html", 404, "This link does not work", _UNUSABLE)


@links.get("/link/", defaults={"token": ""})
@links.get("/link/<path:token>")
def show(token: str) -> Response:
    """Show the question of a link, as the person's card shows it."""
    if why := browser.why_refused():
        raise errors.Denied(403, why)
    row = _find(token, _decided_code(token))
    return _for_somebody_else(row) or _own_card(row) or _page(row)


@links.post("/link/", defaults={"token": ""})
@links.post("/link/<path:token>")
def decide(token: str) -> Response:
    """Decide with the code of the message."""
    pages.check_form(hides_origin=True)
    code = "".join(request.form.get("code", "").split())
    row = _find(token, code)
    return _for_somebody_else(row) or _page_of_end(row) or _page_of_decision(row, token, code)


def _find(token: str, code: str = "") -> Link:
    """Return the link. Raises UsedUp, which counts as a failed attempt of the client's address, and TooMany."""
    limits.take_attempt(to=_ATTEMPT)
    row = link.find(token, code)
    limits.give_attempt_back(to=_ATTEMPT)
    return row


def _page_of_decision(row: Link, token: str, code: str) -> Response:
    """Check the code, decide, and return the page with the result. A wrong code counts as a failed attempt of the address."""
    try:
        decision = _decision()
        if not link.is_code(code):
            return _page(row, 400, fault="Type the six digits that are in the message.")
        tries = _tries_left(row, token, code)
        if tries is not None:
            limits.take_attempt(to=_ATTEMPT)
            left = (
                f"{number_with_noun(tries, 'more wrong code')} and the link is used up."
                if tries
                else "The link is used up now: sign in."
            )
            return _page(row, 403, fault=f"This is not the code in the message. {left}", used_up=not tries)
        transact_in_time(row.workspace_id, partial(_decide, row=row, decision=decision))
    except link.UsedUp:
        raise
    except Refusal as refusal:
        return _page(row, errors.status_of(refusal), refusal=str(refusal))
    response = _page(row)
    browser.set_cookie(response, f"{_short(token)}.{code}", FOLLOWED_SECONDS, _COOKIE)
    return response


def _decided_code(token: str) -> str:
    """Return the code by which this browser has decided at this link; empty if it has not, or for another link."""
    short, _, code = request.cookies.get(browser.cookie_name(_COOKIE), "").partition(".")
    return code if short == _short(token) else ""


def _short(token: str) -> str:
    return sha256(token)[:16]


def _decide(db: Db, row: Link, decision: Decision) -> None:
    person = replace(principal_of(db, row.person_id), address=client.address())
    locked = lock(db, row.session_id, person)
    approval = db.get_one(Approval, row.approval_id, lock=True)
    by_link.decide_by_link(locked, approval, db.get_one(Link, row.id, lock=True), decision)


def _decision() -> Decision:
    """Return the form's decision. Raises Invalid."""
    result, message = request.form.get("do", ""), text("deny_message")
    if result not in {"allow", "deny"}:
        raise Invalid("do", "must be allow or deny. Nothing was decided.")
    values = {"result": result} | ({"deny_message": message} if result == "deny" and message.strip() else {})
    return validated(DecisionBody, values, strict=False).decision()


def _tries_left(row: Link, token: str, code: str) -> int | None:
    """Return None for the right code. Count a wrong code, and return how many more the link takes. Raises UsedUp."""
    with transaction(row.workspace_id) as db:
        locked = db.get_one(Link, row.id, lock=True)
        by = Principal("link", row.id, row.workspace_id, address=client.address())
        return None if locked.takes(db, token, code, by) else locked.tries_left


def _for_somebody_else(row: Link) -> Response | None:
    """Return the page for a signed-in person other than the link's person; None for everybody else."""
    viewer = browser.current_person()
    if viewer is None or viewer.person_id == row.person_id:
        return None
    words = "This link is for another person. You are signed in, so open the same approval with your own rights."
    return pages.failed("shell/failure.html", 403, "Not your link", words, f"/inbox/approvals/{row.approval_id}")


def _own_card(row: Link) -> Response | None:
    """Return the redirect to the card if the link's person is signed in and may see the card; None otherwise."""
    viewer = browser.current_person()
    if viewer is None or viewer.workspace_id != row.workspace_id:
        return None
    with transaction(row.workspace_id) as db:
        approval = db.get(Approval, row.approval_id)
        may_open = approval is not None and may_see(db, viewer, approval)
    return pages.see(f"/inbox/approvals/{row.approval_id}") if may_open else None


def _page_of_end(row: Link) -> Response | None:
    """Return the page of a link that is not open; None for an open link."""
    with transaction(row.workspace_id) as db:
        state = _look(db, row).state
    return None if state == "open" else _page(row, _STATUS[state])


def _page(row: Link, status: int = 200, *, refusal: str = "", fault: str = "", used_up: bool = False) -> Response:
    """Return the page with the approval's present state, a refusal on top, and the fault beside the field of the code."""
    with transaction(row.workspace_id) as db:
        view = _look(db, row)
    values = view.values | {"state": view.state, "refusal": refusal, "fault": fault, "used_up": used_up}
    response = Response(status=status, mimetype=HTML)
    values["csrf_token"] = browser.form_token(response)
    response.set_data(render_template("link/message_link.html", row=row, form=request.form, **values))
    return response


def _look(db: Db, row: Link) -> View:
    """Return the link's present state, and only those values of the approval that the link's person may see now."""
    g.now, g.halted = clock.now(db), Halt.current(db)
    votes = Vote.of_approval(db, row.approval_id)  # before the approval: a decision that commits meanwhile is seen as decided
    approval = db.get(Approval, row.approval_id)
    person = _person(db, row)
    if approval is None or person is None or not may_see(db, person, approval):
        escalated = approval is not None and approval.status == "pending" and approval.level > 0
        words = "The deadline passed, and other people were asked." if escalated else ""
        return View("not_yours", {"heading": "Not yours to decide", "words": f"{words} {_NOT_YOURS}".strip()})
    session = db.get_one(Session, approval.session_id)
    state = by_link.state(db, session, approval, row, g.now)
    values = partial(matter, db, approval, waiting_list.seen(db, approval), Precedent.of(db, approval))
    if state == "decided":
        outcome = sentences.outcome(approval, Names.of(db, [approval.decided_by])[approval.decided_by], g.now)
        is_by_link = db.get_one(Link, row.id).used_at is not None  # then its person sees what was decided, and what comes of it
        end = {"heading": outcome, "words": "There is nothing left to decide."}
        return View(state, {"outcome": outcome, **values()} if is_by_link else end)
    if state == "over":
        return View(state, {"heading": "The deadline of this link has passed", "words": _over(db, approval)})
    if state == "changed":
        words = "Somebody has changed the call's input since the message was sent. Sign in to see the input that would run now."
        return View(state, {"heading": "The call has changed", "words": words})
    if why_not := waiting_list.why_not(db, person, approval, votes):
        return View("not_yours", {"heading": "Not yours to decide", "words": why_not})
    shown = {"reader": db.get_one(Person, row.person_id).name, "why_sign_in": by_link.why_sign_in(db, session, approval)}
    return View(state, values() | shown)


def _person(db: Db, row: Link) -> PersonPrincipal | None:
    """Return the link's person with the present role and groups; None for a member who is deactivated."""
    try:
        return principal_of(db, row.person_id)
    except NotFound:
        return None


def _over(db: Db, approval: Approval) -> str:
    if overdue(db, [approval], g.now):
        return "This link decides nothing any more. Sign in to see what became of the approval."
    if approval.level:
        return "Nobody decided in time, so more people were asked. Sign in to decide."
    return "The approval was given more time after the message was sent. Sign in to decide."
