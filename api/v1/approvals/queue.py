"""Selects the approvals that wait for a person's vote, and the approvals and sessions that a principal may see."""

from collections.abc import Iterable
from typing import TypeVar

from api.door.errors import Denied
from api.door.paging import Count, Order, Selection
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid, NotFound
from models.flow.lock import lock
from models.people.principal import PersonPrincipal
from models.session.approval.approver_set import ApproverSet
from models.session.approval.decider import Decider
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.row import Session

R = TypeVar("R")

OLDEST_DEADLINE: Order[Approval] = Order("queue", (Approval.expires_at, Approval.id), descending=False)


def person_of(principal: Principal, named: str) -> str:
    """Return the id of the person whose queue the request names: `me`, or `user_...`. Raises Invalid, Denied."""
    if isinstance(principal, PersonPrincipal):
        if named not in {"me", principal.person_id} and "admin" not in principal.scopes:
            raise Denied(403, "for: another person's queue is for admins and API keys; ask for your own with for=me.")
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


def owned(db: Db, person_id: str) -> Selection[Approval]:
    """Return the approvals that `Decider.owns`, decided ones too."""
    condition, values = Decider.of(db, person_id, clock.now(db)).owned_sql
    return Selection(Approval).where(condition, **values)


def only_own(db: Db, principal: Principal, selection: Selection[R], column: str, of: str = "id") -> Selection[R]:
    """Return the selection. If the principal reads only their own: limited to rows whose `column` is in `of` of own approvals."""
    if sees_all(principal):
        return selection
    own = owned(db, principal.id)
    ids = f"SELECT {of} FROM approval WHERE {' AND '.join(own.conditions)}"  # noqa: S608 - names of our own
    return selection.where(f"{column} IN ({ids})", **own.values)


def may_see(db: Db, principal: Principal, approval: Approval) -> bool:
    """True if the principal reads everything, or the approval is their own."""
    return sees_all(principal) or Decider.of(db, principal.id, clock.now(db)).owns(approval)


def find(db: Db, principal: Principal, approval_id: str) -> Approval:
    """Return the approval. Raises NotFound, also for a person who may not see it."""
    approval = db.get(Approval, approval_id)
    if approval is None or not may_see(db, principal, approval):
        raise NotFound("approval", approval_id)
    return approval


def lock_approval(db: Db, principal: Principal, approval_id: str) -> tuple[Locked, Approval]:
    """Lock the approval's session. Returns the locked session, and the approval as it is under the lock: only that decides."""
    locked = lock(db, find(db, principal, approval_id).session_id, principal)
    return locked, db.get_one(Approval, approval_id, lock=True)


def find_session(db: Db, principal: Principal, session_id: str) -> Session:
    """Return the session. Raises NotFound, also for a person who may not see it."""
    check_session(db, principal, session_id)
    session = db.get(Session, session_id)
    if session is None:
        raise NotFound("session", session_id)
    return session


def check_session(db: Db, principal: Principal, session_id: str) -> None:
    """Raise NotFound if the principal is a person who reads only their own, and none of the session's approvals is."""
    if not sees_all(principal) and not owned(db, principal.id).equal(session_id=session_id).exist(db):
        raise NotFound("session", session_id)


def sees_all(principal: Principal) -> bool:
    """True if the principal has the scope `read`, or is an API key, whose scopes are checked elsewhere."""
    return "read" in principal.scopes or not isinstance(principal, PersonPrincipal)


def before(db: Db, waiting: Selection[Approval], first: Approval) -> Count:
    """Return how many approvals of the queue come before `first`, up to MOST_COUNTED."""
    earlier = waiting.where(
        "(expires_at, id) < (%(first_expires_at)s, %(first_id)s)", first_expires_at=first.expires_at, first_id=first.id
    )
    return earlier.count(db)
