"""The waiting list of a person: the pending approvals that wait for the person's vote, the oldest deadline first."""

from collections.abc import Iterable
from typing import TypeVar

from api.door.errors import Denied
from api.door.paging import Count, Order, Selection
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid
from models.people.principal import PersonPrincipal
from models.session.approval.approver_set import ApproverSet
from models.session.approval.decider import Decider
from models.session.approval.row import Approval

R = TypeVar("R")

OLDEST_DEADLINE: Order[Approval] = Order("waiting_list", (Approval.expires_at, Approval.id), descending=False)


def person_of(principal: Principal, named: str) -> str:
    """Return the id of the person whose waiting list the request names: `me`, or `user_...`. Raises Invalid, Denied."""
    if isinstance(principal, PersonPrincipal):
        if named not in {"me", principal.person_id} and "admin" not in principal.scopes:
            raise Denied(403, "for: another person's waiting list is for admins and API keys; ask for your own with for=me.")
        return principal.person_id if named == "me" else named
    if named == "me":
        raise Invalid("for", "me is the person who is signed in, and an API key is none: name a person, such as user_...")
    return named


def waiting_for(db: Db, person_id: str, makers: Iterable[str] = ()) -> Selection[Approval]:
    """Return the pending approvals that the person may decide and has not voted on, by their own or by a delegated right.

    `makers` are those of the person's sign-in: with four eyes they may not have asked for the call either.
    """
    decider = Decider.of(db, person_id, clock.now(db), makers)
    condition, values = decider.awaited_sql
    waiting = Selection(Approval).where("workspace_id = %(workspace)s", workspace=db.workspace_id).where(condition, **values)
    sets = ApproverSet.with_names(db, {name for right in decider.rights for name in right.names})
    return waiting.within("approver_set", sets)


def before(db: Db, waiting: Selection[Approval], first: Approval) -> Count:
    """Return how many approvals of the waiting list come before `first`, up to MOST_COUNTED."""
    earlier = waiting.where(
        "(expires_at, id) < (%(first_expires_at)s, %(first_id)s)", first_expires_at=first.expires_at, first_id=first.id
    )
    return earlier.count(db)
