"""Erasing a session: deleting it, with the texts of its audit. The audit keeps ids, times and hashes."""

from models.audit import acts, erasing, legal_hold
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock
from models.database.rows import Db
from models.errors import NotFound
from models.flow.begin import sessions
from models.flow.lock import lock
from models.outbox import removal
from models.outbox.removal import Removal
from models.session.row import Session


def erase(db: Db, session_id: str, reason: str, *, by: Principal) -> None:
    """Delete a session, and have a sweep erase the texts of its audit, too. Idempotent, also for a session that is deleted already.

    What waits is cancelled. Raises NotFound; Conflict while the session runs, or while it is on a legal hold.
    """
    if db.get(Session, session_id) is not None:
        sessions.delete(lock(db, session_id, by))
    elif not db.rows(
        "SELECT FROM audit WHERE chain = %(chain)s AND chain <> %(own)s LIMIT 1", chain=session_id, own=db.workspace_id
    ):
        raise NotFound("session", session_id)
    pending = db.get(Removal, session_id, lock=True)
    is_done = pending.kind == "erased_session" if pending else not db.value(_HAS_TEXTS, session=session_id)
    if is_done:
        return
    acts.record(db, by, "session.erased", session_id, {"reason": Text(reason)})
    legal_hold.refuse(db, session_id)
    if pending is None:
        removal.begin(db, "erased_session", session_id, by)
    else:
        pending.kind, pending.erased_by, pending.created_at, pending.emptied_at = "erased_session", str(by), clock.now(db), None


def erase_batch(db: Db, session_id: str, by: Principal) -> bool:
    """Delete the responses that are about an erased session, and the next texts of its audit. Returns True if there may be more."""
    db.write("DELETE FROM stored_response WHERE about = %(session)s", session=session_id)
    return erasing.erase_where(db, by, "chain = %(session)s", session=session_id).has_more


_HAS_TEXTS = """
    SELECT EXISTS (SELECT FROM audit_text WHERE chain = %(session)s)
        OR EXISTS (SELECT FROM stored_response WHERE about = %(session)s)
"""
