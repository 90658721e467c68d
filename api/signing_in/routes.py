"""The page for signing in, signing out, and one-time links."""

from flask import Response, request

from api.desk import waiting_list
from api.door import browser, client, limits, pages
from api.door.pages import page
from api.signing_in import proxy
from api.signing_in.blueprint import let_in, signing_in, start
from models.database.transactions import transaction
from models.people.arrival import NotConnected
from models.people.invitation import Invitation, LinkUsed
from models.people.issuer import issuers
from models.people.person import MAX_NAME
from models.people.principal import PersonPrincipal
from models.people.sign_in import SignIn
from models.settings import settings


@signing_in.get("/sign-in")
def show() -> Response:
    """Show the ways to sign in, or sign in the person whom the proxy's header names."""
    place = pages.local(request.args.get("next"))
    why = browser.why_refused()
    try:
        if why is None and (response := proxy.enter(place)) is not None:
            return response
    except NotConnected as refusal:
        return sign_in_page(place, failure=str(refusal), status=403)
    return sign_in_page(place, why_refused=why, status=403 if why else 200)


def sign_in_page(place: str, *, why_refused: str | None = None, failure: str = "", email: str = "", status: int = 200) -> Response:
    """Return the page with the ways to sign in that the settings allow."""
    ways = {"issuers": sorted(issuers()), "passwords": settings().passwords}
    return pages.form("sign_in.html", status, place=place, refused=why_refused, failure=failure, email=email, **ways)


@signing_in.errorhandler(LinkUsed)
def refuse_link(refusal: LinkUsed) -> Response:
    """Show the page of a one-time link that cannot be used."""
    return pages.failed("refused.html", 409, "This link does not work", str(refusal))


@signing_in.get("/sign-in/link/<secret>")
def show_link(secret: str) -> Response:
    """Show whom a one-time link signs in. The link stays unused, since programs open links too."""
    return _link_page(_invitation(secret))


@signing_in.post("/sign-in/link/<secret>")
def use_link(secret: str) -> Response:
    """Use a one-time link up, and sign its person in. Leads to the card of the one approval that waits for the person.

    The inbox follows if none or several wait. A link for a new person asks for a name, and is not used up by a blank one.
    """
    pages.check_form()
    invitation = _invitation(secret)
    name = " ".join(request.form.get("name", "").split())[:MAX_NAME]
    if not name and not _name_of_member(invitation):
        return _link_page(invitation, fault="Type your name: your colleagues and the audit see who decided by it.")
    with transaction(invitation.workspace_id) as db:
        person = Invitation.accept(db, invitation.id, name, client.address())
        cookie, place = start(db, person, "link"), waiting_list.address_of_first(db, person)
    return let_in(cookie, place)


def _link_page(invitation: Invitation, fault: str = "") -> Response:
    """Return the page of a one-time link. `fault`: what is wrong with the name that was sent."""
    values = {"invitation": invitation, "refused": browser.why_refused(), "most": MAX_NAME, "fault": fault}
    values |= {"name": _name_of_member(invitation)}
    return pages.form("link.html", 400 if fault else 200, **values)


def _name_of_member(invitation: Invitation) -> str:
    with transaction(invitation.workspace_id) as db:
        return invitation.name_of_member(db)


def _invitation(secret: str) -> Invitation:
    """Return the invitation of a one-time link. Raises LinkUsed; TooMany for an address that opened many wrong links.

    A good link works however many wrong ones its address opened, and wrong ones keep nobody from signing in another way.
    """
    try:
        return Invitation.of_secret(secret)
    except LinkUsed:
        limits.take_attempt(to="open a link")
        raise


@signing_in.post("/inbox/sign-out")
@page("read or own")
def sign_out(person: PersonPrincipal) -> Response:
    """Sign out of this browser."""
    with transaction(person.workspace_id) as db:
        SignIn.end(db, person.person_id, person.sign_in_id, by=person)
    response = pages.see(pages.SIGN_IN)
    browser.delete_cookie(response)
    return response
