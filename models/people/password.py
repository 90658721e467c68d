"""Passwords of members, if the setting `passwords` allows them: Argon2id, per workspace."""

import secrets
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from models.audit import acts
from models.audit.principal import Principal
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid
from models.people import person
from models.people.member import Member
from models.people.principal import PersonPrincipal

SHORTEST, LONGEST = 12, 256
_HASHER = PasswordHasher()


@cache
def _unusable_hash() -> str:
    """Return a hash that no password matches."""
    return _HASHER.hash(secrets.token_urlsafe())


def hashed(password: str) -> str:
    """Return the hash of a new password, in about 50 ms of CPU. Raises Invalid for a password that is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise Invalid("password", f"must have {SHORTEST} to {LONGEST} characters.")
    return _HASHER.hash(password)


def store(db: Db, person_id: str, password_hash: str | None, *, by: Principal) -> None:
    """Set a member's password; None removes it. Raises NotFound."""
    member = Member.find(db, person_id, lock=True)
    member.password_hash, member.password_makers = password_hash, (list(by.makers) or None) if password_hash else None
    acts.record(db, by, "person.password_set" if password_hash else "person.password_removed", person_id, {})


def candidates(email: str) -> list[tuple[PersonPrincipal | None, str]]:
    """Return the members with this e-mail address that have a password, each with the password's hash.

    Never empty: an unknown address gets a hash that no password matches, so that the comparison takes as long.
    """
    members: list[tuple[PersonPrincipal | None, str]] = []
    try:
        with transaction() as db:
            people = person.everywhere(db, email)
    except Invalid:
        people = {}
    for workspace_id, person_id in people.items():
        with transaction(workspace_id) as db:
            member = db.get(Member, workspace_id, person_id)
            if member and member.password_hash:  # a deactivated member has none
                members.append((member.principal(db, member.password_makers), member.password_hash))
    return members or [(None, _unusable_hash())]


def fits(password_hash: str, password: str) -> bool:
    """True if the password matches the hash, in about 50 ms of CPU."""
    try:
        return _HASHER.verify(password_hash, password[: LONGEST + 1])
    except (VerificationError, InvalidHashError):
        return False
