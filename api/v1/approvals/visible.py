"""The approvals and sessions that a principal may see. A person whose role reads only their own sees what they may decide."""

from typing import TypeVar

from api.door.paging import Selection
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.errors import NotFound
from models.flow.lock import lock
from models.people.principal import PersonPrincipal
from models.session.approval.decider import Decider
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.row import Session

R = TypeVar("R")


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
