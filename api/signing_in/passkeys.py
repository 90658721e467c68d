"""Registers passkeys, and signs people in by them. Nobody types an e-mail address, so nobody can find out which are known.

The relying party is the host of ASSENT_PUBLIC_URL, which is `localhost` or a name: never an address.

Functions import `api.signing_in.authenticator` themselves: its library would make the start of each process 0.3 s longer.
"""

import json
from base64 import urlsafe_b64decode
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flask import Response, request

from api.door import client, limits, pages
from api.door.errors import Denied
from api.door.pages import page
from api.door.routes import JSON
from api.signing_in import ceremonies
from api.signing_in.adding import check_can_add
from api.signing_in.blueprint import let_in, signing_in, start
from models.database import clock
from models.database.transactions import transaction
from models.people.member import Member
from models.people.passkey import Passkey
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.settings import settings

if TYPE_CHECKING:
    from api.signing_in.authenticator import Options

_FAILED = "This passkey is not known here. Sign in another way, or ask an admin for a new link."
_MOST_CHARACTERS = 20_000
"""Longest credential that a browser may send, as JSON."""


@signing_in.post("/sign-in/passkey/options")
def passkey_options() -> Response:
    """Begin a sign-in by passkey. Returns the options for `navigator.credentials.get`."""
    from api.signing_in import authenticator

    pages.check_form()
    limits.take_attempt()
    return _begin("passkey", authenticator.sign_in_options(relying_party()))


@signing_in.post("/sign-in/passkey")
def sign_in_by_passkey() -> Response:
    """Sign in by the authenticator's signature."""
    from api.signing_in import authenticator

    pages.check_form()
    ceremony = authenticator.Ceremony(ceremonies.end("passkey")["challenge"], relying_party(), origin())
    credential = _credential()
    with transaction() as db:
        place = Passkey.look_up(db, _id_of(credential))
    if place is None:
        raise Denied(403, _FAILED)
    workspace_id, passkey_id = place
    with transaction(workspace_id) as db:
        passkey = db.get_one(Passkey, passkey_id, lock=True)
        try:
            passkey.sign_count = authenticator.verify_sign_in(ceremony, credential, passkey)
        except authenticator.NotVerified:
            raise Denied(403, _FAILED) from None
        passkey.used_at = clock.now(db)
        person = Member.find(db, passkey.person_id).principal(db, passkey.makers)
        secret = start(db, replace(person, address=client.address()), "passkey")
    limits.give_attempt_back()
    return let_in(secret, request.form.get("next"))


@signing_in.post("/inbox/account/passkeys/options")
@page("read or own")
def register_options(person: PersonPrincipal) -> Response:
    """Begin the registration of a passkey. Returns the options for `navigator.credentials.create`."""
    from api.signing_in import authenticator

    check_can_add(person)
    with transaction(person.workspace_id) as db:
        row = db.get_one(Person, person.person_id)
        passkeys = Passkey.of_member(db, person.person_id)
    options = authenticator.registration_options(relying_party(), person.workspace_id, row, passkeys)
    return _begin("registration", options, sign_in=person.sign_in_id)


@signing_in.post("/inbox/account/passkeys")
@page("read or own")
def register(person: PersonPrincipal) -> Response:
    """Register the passkey that the authenticator has made."""
    from api.signing_in import authenticator

    check_can_add(person)
    ceremony = ceremonies.end("registration")
    if ceremony["sign_in"] != person.sign_in_id:
        raise Denied(403, "This registration was begun by another sign-in. Begin again.")
    try:
        credential = authenticator.verify_registration(
            authenticator.Ceremony(ceremony["challenge"], relying_party(), origin()), _credential()
        )
    except authenticator.NotVerified as error:
        raise Denied(403, f"The passkey was not registered: {error}.") from None
    with transaction(person.workspace_id) as db:
        Passkey.add(db, person.person_id, credential, name=" ".join(request.form.get("name", "").split()), by=person)
    return pages.see("/inbox/account")


def relying_party() -> str:
    """Return the id of the relying party. Raises Denied if the public URL's host is an address."""
    host = urlsplit(settings().public_url).hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return host
    raise Denied(403, f"A passkey needs a name, and ASSENT_PUBLIC_URL has the address {host}. On one machine, use localhost.")


def origin() -> str:
    """Return the origin of the pages that passkeys work on."""
    parts = urlsplit(settings().public_url)
    return f"{parts.scheme}://{parts.netloc}"


def _begin(kind: str, options: "Options", **more: str) -> Response:
    response = Response(options.text, mimetype=JSON)
    ceremonies.begin(response, {"kind": kind, "challenge": options.challenge} | more)
    return response


def _id_of(credential: dict[str, Any]) -> bytes:
    return urlsafe_b64decode(credential["id"] + "===")  # the padding that base64url leaves out, at least


def _credential() -> dict[str, Any]:
    """Return the credential that the browser sent. Raises Denied for a malformed or missing one."""
    text = request.form.get("credential", "")
    try:
        credential: dict[str, Any] = json.loads(text) if len(text) <= _MOST_CHARACTERS else {}
        _id_of(credential)
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        raise Denied(403, "The browser sent no passkey. Try again, or sign in another way.") from None
    return credential
