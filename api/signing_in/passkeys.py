"""Registers passkeys, and signs people in by them. Nobody types an e-mail address, so nobody can find out which are known.

The relying party is the host of ASSENT_PUBLIC_URL, which is `localhost` or a name: never an address.
"""

import json
from dataclasses import replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import webauthn
from flask import Response, request
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

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
from models.people.passkey import Credential, Passkey, user_handle
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.settings import settings

_FAILED = "This passkey is not known here. Sign in another way, or ask an admin for a new link."
_MOST_CHARACTERS = 20_000
"""Longest credential that a browser may send, as JSON."""


@signing_in.post("/sign-in/passkey/options")
def passkey_options() -> Response:
    """Begin a sign-in by passkey. Returns the options for `navigator.credentials.get`."""
    pages.check_form()
    limits.take_attempt()
    options = webauthn.generate_authentication_options(
        rp_id=relying_party(), user_verification=UserVerificationRequirement.REQUIRED
    )
    return _begin("passkey", options)


@signing_in.post("/sign-in/passkey")
def sign_in_by_passkey() -> Response:
    """Sign in by the authenticator's signature."""
    pages.check_form()
    challenge = ceremonies.end("passkey")["challenge"]
    credential = _credential()
    with transaction() as db:
        place = Passkey.look_up(db, base64url_to_bytes(credential["id"]))
    if place is None:
        raise Denied(403, _FAILED)
    workspace_id, passkey_id = place
    with transaction(workspace_id) as db:
        passkey = db.get_one(Passkey, passkey_id, lock=True)
        passkey.sign_count = _verified(credential, challenge, passkey)
        passkey.used_at = clock.now(db)
        person = Member.find(db, passkey.person_id).principal(db, passkey.makers)
        secret = start(db, replace(person, address=client.address()), "passkey")
    limits.give_attempt_back()
    return let_in(secret, request.form.get("next"))


@signing_in.post("/inbox/account/passkeys/options")
@page("read or own")
def register_options(person: PersonPrincipal) -> Response:
    """Begin the registration of a passkey. Returns the options for `navigator.credentials.create`."""
    check_can_add(person)
    with transaction(person.workspace_id) as db:
        row = db.get_one(Person, person.person_id)
        passkeys = Passkey.of_member(db, person.person_id)
    options = webauthn.generate_registration_options(
        rp_id=relying_party(),
        rp_name="Assent",
        user_id=user_handle(person.workspace_id, person.person_id),
        user_name=row.email,
        user_display_name=row.name,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=passkey.credential_id) for passkey in passkeys],
    )
    return _begin("registration", options, sign_in=person.sign_in_id)


@signing_in.post("/inbox/account/passkeys")
@page("read or own")
def register(person: PersonPrincipal) -> Response:
    """Register the passkey that the authenticator has made."""
    check_can_add(person)
    ceremony = ceremonies.end("registration")
    if ceremony["sign_in"] != person.sign_in_id:
        raise Denied(403, "This registration was begun by another sign-in. Begin again.")
    try:
        verified = webauthn.verify_registration_response(
            credential=_credential(),
            expected_challenge=base64url_to_bytes(ceremony["challenge"]),
            expected_rp_id=relying_party(),
            expected_origin=origin(),
            require_user_verification=True,
        )
    except WebAuthnException as error:
        raise Denied(403, f"The passkey was not registered: {error}.") from None
    with transaction(person.workspace_id) as db:
        Passkey.add(
            db,
            person.person_id,
            Credential(id=verified.credential_id, public_key=verified.credential_public_key, sign_count=verified.sign_count),
            name=" ".join(request.form.get("name", "").split()),
            by=person,
        )
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


def _begin(kind: str, options: Any, **more: str) -> Response:
    response = Response(webauthn.options_to_json(options), mimetype=JSON)
    ceremonies.begin(response, {"kind": kind, "challenge": bytes_to_base64url(options.challenge)} | more)
    return response


def _credential() -> dict[str, Any]:
    """Return the credential that the browser sent. Raises Denied for a malformed or missing one."""
    text = request.form.get("credential", "")
    try:
        credential: dict[str, Any] = json.loads(text) if len(text) <= _MOST_CHARACTERS else {}
        base64url_to_bytes(credential["id"])
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        raise Denied(403, "The browser sent no passkey. Try again, or sign in another way.") from None
    return credential


def _verified(credential: dict[str, Any], challenge: str, passkey: Passkey) -> int:
    """Return the new sign count. Raises Denied for a signature that is not the passkey's."""
    try:
        return webauthn.verify_authentication_response(
            credential=credential,
            expected_challenge=base64url_to_bytes(challenge),
            expected_rp_id=relying_party(),
            expected_origin=origin(),
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        ).new_sign_count
    except WebAuthnException:
        raise Denied(403, _FAILED) from None
