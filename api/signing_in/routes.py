"""Routes of the pages for signing in."""

from flask import Blueprint, Response, request

from api import browser, pages
from api.door import HTML, Door, opens
from api.pages import page
from models.database.transactions import transaction
from models.people.principal import PersonPrincipal
from models.people.sign_in import SignIn

signing_in = Blueprint("signing_in", __name__, template_folder="templates")


@signing_in.get("/sign-in")
@opens(Door(key=False, media_type=HTML))
def show() -> Response:
    """Show the ways to sign in."""
    return pages.html("sign_in.html", title="Sign in", next=pages.local(request.args.get("next")))


@signing_in.post("/inbox/sign-out")
@page("read or own")
def sign_out(person: PersonPrincipal) -> Response:
    """Sign out of this browser."""
    with transaction(person.workspace_id) as db:
        SignIn.end(db, person.person_id, person.sign_in_id, by=person)
    response = pages.see("/sign-in")
    browser.delete_cookie(response)
    return response
