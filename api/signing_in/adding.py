"""What a sign-in needs to add a way to sign in, so that a browser that was left open, or an issuer with a limit, adds none."""

from api.door.errors import Denied
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.people.principal import PersonPrincipal
from models.people.sign_in import RECENT, SignIn

ACCOUNT = "/inbox/account"
"""The page of a person's own account."""


def check_can_add(person: PersonPrincipal) -> None:
    """Raise Denied (403) if the person's sign-in is older than RECENT; Forbidden if its issuer limits the role."""
    person.check_unlimited()
    with transaction(person.workspace_id) as db:
        if not is_recent(db, person):
            minutes = int(RECENT.total_seconds() // 60)
            raise Denied(403, f"This needs a sign-in of the last {minutes} minutes. Sign out, sign in again, and repeat this.")


def can_add(db: Db, person: PersonPrincipal) -> bool:
    """True if the person's sign-in is younger than RECENT, and no issuer limits the role."""
    return person.limit is None and is_recent(db, person)


def is_recent(db: Db, person: PersonPrincipal) -> bool:
    """True if the person's sign-in is younger than RECENT."""
    return clock.now(db) - db.get_one(SignIn, person.sign_in_id).created_at < RECENT
