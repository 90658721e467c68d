"""Connects an account at an issuer, or a name at the proxy, to the person whose e-mail address it has.

The issuer vouches for the account, and the person confirms it, signed in another way in the same browser. An issuer alone takes
over nobody.
"""

from flask import Response

from api.desk.shell import viewing
from api.door import browser, pages
from api.door.errors import Denied
from api.door.pages import page
from api.signing_in import ceremonies
from api.signing_in.adding import ACCOUNT, can_add, check_can_add
from api.signing_in.blueprint import signing_in
from models.database.transactions import transaction
from models.people import arrival
from models.people.arrival import Arrival
from models.people.principal import PersonPrincipal

_KIND = "connect"


def offer(arrived: Arrival) -> Response | None:
    """Return the page on which the person who is signed in here confirms the account. None if nobody here can connect it now."""
    person = browser.current_person()
    if person is None or not arrival.connectable(arrived, person):
        return None
    with transaction(person.workspace_id) as db:
        if not can_add(db, person):
            return None
        frame = viewing.frame(db, person)
    response = pages.html("connect.html", person, arrived=arrived, section="account", **frame)
    account = {"issuer": arrived.issuer, "subject": arrived.subject, "source": arrived.source.name}
    ceremonies.begin(response, {"kind": _KIND, "sign_in": person.sign_in_id} | account)
    return response


@signing_in.post(f"{ACCOUNT}/accounts")
@page("read or own")
def connect(person: PersonPrincipal) -> Response:
    """Connect the account that this sign-in was offered."""
    check_can_add(person)
    ceremony = ceremonies.end(_KIND)
    if ceremony["sign_in"] != person.sign_in_id:
        raise Denied(403, "This account was offered to another sign-in. Begin again.")
    with transaction(person.workspace_id) as db:
        arrival.connect(db, ceremony["issuer"], ceremony["subject"], source=ceremony["source"], by=person)
    return pages.see(ACCOUNT)
