"""What browsers ask authenticators for, and what authenticators sign, by the library webauthn.

Import this module inside of functions. The library loads the grammar of certificates, which takes 0.3 s of CPU.
"""

from dataclasses import dataclass
from typing import Any

import webauthn
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialCreationOptions,
    PublicKeyCredentialDescriptor,
    PublicKeyCredentialRequestOptions,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from models.people.passkey import Credential, Passkey, user_handle
from models.people.person import Person

NotVerified = WebAuthnException


@dataclass(frozen=True)
class Options:
    """The options of a ceremony: as JSON for the browser, and the challenge in them, in base64url."""

    text: str
    challenge: str


@dataclass(frozen=True)
class Ceremony:
    """What the authenticator has to sign."""

    challenge: str
    relying_party: str
    origin: str


def sign_in_options(relying_party: str) -> Options:
    """Return the options for `navigator.credentials.get`."""
    options = webauthn.generate_authentication_options(rp_id=relying_party, user_verification=UserVerificationRequirement.REQUIRED)
    return _options(options)


def registration_options(relying_party: str, workspace_id: str, person: Person, passkeys: list[Passkey]) -> Options:
    """Return the options for `navigator.credentials.create`. `passkeys`: those that the person already has."""
    options = webauthn.generate_registration_options(
        rp_id=relying_party,
        rp_name="Assent",
        user_id=user_handle(workspace_id, person.id),
        user_name=person.email,
        user_display_name=person.name,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=passkey.credential_id) for passkey in passkeys],
    )
    return _options(options)


def verify_sign_in(ceremony: Ceremony, credential: dict[str, Any], passkey: Passkey) -> int:
    """Return the new sign count. Raises NotVerified for a signature that is not the passkey's."""
    return webauthn.verify_authentication_response(
        credential=credential,
        expected_challenge=base64url_to_bytes(ceremony.challenge),
        expected_rp_id=ceremony.relying_party,
        expected_origin=ceremony.origin,
        credential_public_key=passkey.public_key,
        credential_current_sign_count=passkey.sign_count,
        require_user_verification=True,
    ).new_sign_count


def verify_registration(ceremony: Ceremony, credential: dict[str, Any]) -> Credential:
    """Return the new credential. Raises NotVerified if it does not answer this ceremony."""
    verified = webauthn.verify_registration_response(
        credential=credential,
        expected_challenge=base64url_to_bytes(ceremony.challenge),
        expected_rp_id=ceremony.relying_party,
        expected_origin=ceremony.origin,
        require_user_verification=True,
    )
    return Credential(id=verified.credential_id, public_key=verified.credential_public_key, sign_count=verified.sign_count)


def _options(options: PublicKeyCredentialCreationOptions | PublicKeyCredentialRequestOptions) -> Options:
    return Options(webauthn.options_to_json(options), bytes_to_base64url(options.challenge))
