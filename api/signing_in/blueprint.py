"""The routes' blueprint, and the functions that begin a sign-in, whichever way the person proved their identity."""

from flask import Blueprint, Response, request

from api.desk.shell.blueprint import frame_of_refusal
from api.door import browser, pages
from models.database.rows import Db
from models.database.transactions import transaction
from models.people.principal import PersonPrincipal
from models.people.roles import Role
from models.people.sign_in import SignIn
from models.settings import settings

signing_in = Blueprint("signing_in", __name__, template_folder="templates")
pages.install(signing_in, "refused.html", frame=frame_of_refusal)


def enter(person: PersonPrincipal, method: str, place: str | None, limit: Role | None = None) -> Response:
    """Sign a person in, and send the browser to a page of ours. `limit`: the strongest role that an issuer or the proxy gives."""
    with transaction(person.workspace_id) as db:
        secret = start(db, person, method, limit)
    return let_in(secret, place)


def start(db: Db, person: PersonPrincipal, method: str, limit: Role | None = None) -> str:
    """Begin a sign-in in the transaction's workspace. Returns the secret of its cookie, new against session fixation."""
    return SignIn.start(db, person, method, limit=limit, user_agent=request.headers.get("user-agent"))[1]


def let_in(secret: str, place: str | None) -> Response:
    """Give the browser the cookie of a sign-in. The browser's former sign-in ends."""
    before = browser.current_person()
    if before is not None:
        with transaction(before.workspace_id) as db:
            SignIn.end(db, before.person_id, before.sign_in_id, by=before)
    response = pages.see(pages.local(place))
    browser.set_cookie(response, secret, settings().sign_in_seconds)
    return response
