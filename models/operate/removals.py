"""Removes the rows of deleted sessions and endpoints, and what identifies erased people, in batches."""

from datetime import timedelta
from typing import Any

from models.audit import legal_hold
from models.audit.acts import WorkspaceChain
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction
from models.errors import Conflict
from models.notices.link import Link
from models.operate.personal_data import person, session
from models.outbox import removal
from models.outbox.delivery import Delivery
from models.outbox.removal import Removal
from models.session.approval.evidence import Evidence
from models.session.approval.grant import Grant
from models.session.archive.part import erase_parts
from models.session.event.row import Event
from models.session.thread.inline_agent import InlineAgent
from models.session.thread.row import Thread
from models.session.tool_call.stored_result import StoredResult
from models.session.turn.fold import Fold
from models.session.turn.row import Turn
from models.session.work import Work

BATCH = 1000
"""Most calls, and most other rows of one table, that one transaction deletes."""
LATE = timedelta(seconds=60)
"""Longer than any transaction may take. After this time, no transaction inserts rows of a deleted session or endpoint."""


def remove_batch(workspace_id: str, subject_id: str) -> bool:
    """Delete the next rows of a deleted session or endpoint, or of an erased person. Returns True if there may be more. Idempotent.

    They stay while they are on a legal hold that was set after the deletion, also on one that is set while this runs.
    """
    try:
        with transaction(workspace_id) as db:
            row = db.first(Removal, "WHERE subject_id = %(id)s FOR UPDATE SKIP LOCKED", id=subject_id)
            if row is None or (row.kind != "endpoint" and legal_hold.find(db, subject_id)):
                return False
            has_more = _remove(db, row)
            if row.kind != "endpoint":
                WorkspaceChain.lock(db, workspace_id)
                legal_hold.refuse(db, subject_id)
            return has_more
    except Conflict:  # rolls back what was deleted
        return False


def _remove(db: Db, row: Removal) -> bool:
    """Delete a batch; where nothing is left, note that, and forget the removal after `LATE`. Returns True if there may be more."""
    removal.sees(db, row.subject_id)
    if _delete_some(db, row):
        return True
    now = clock.now(db)
    row.emptied_at = row.emptied_at or now
    if row.created_at < now - LATE and not (row.kind == "erased_person" and person.is_on_hold(db, row.subject_id)):
        db.delete(row)
    return False


def _delete_some(db: Db, row: Removal) -> bool:
    """Delete a batch. Returns False if no row was left."""
    if row.kind == "endpoint":
        return _delete(db, Delivery, "endpoint_id = %(subject)s", row.subject_id)
    if row.kind == "erased_person":
        return person.erase_batch(db, row.subject_id, _by(row))
    if _delete_of_session(db, row):
        return True
    return row.kind == "erased_session" and session.erase_batch(db, row.subject_id, _by(row))


def _by(row: Removal) -> Principal:
    """Return the principal that had a session or a person erased, for the acts of the sweep."""
    kind, _, id_ = (row.erased_by or "system:sweep").partition(":")
    return Principal(kind, id_, row.workspace_id)


def _delete_of_session(db: Db, row: Removal) -> bool:
    """Delete a batch of a session's rows. Returns False if no row was left."""
    erase_parts(db, row.subject_id)
    beyond_calls = [approval_id for (approval_id,) in db.rows(_BEYOND_CALLS, session=row.subject_id, limit=BATCH)]
    if beyond_calls:
        for name in _OF_APPROVALS:
            db.write(f"DELETE FROM {name} WHERE approval_id = ANY (%(ids)s)", ids=beyond_calls)  # noqa: S608 - names of our own
        db.write("DELETE FROM approval WHERE id = ANY (%(ids)s)", ids=beyond_calls)
        return True
    calls = [call_id for (call_id,) in db.rows(_CALLS, session=row.subject_id, limit=BATCH)]
    if calls:
        for statement in _OF_CALLS:
            db.write(statement, calls=calls)
        return True
    return any(_delete(db, table, "session_id = %(subject)s", row.subject_id) for table in _OF_SESSION)


def _delete(db: Db, table: type[Base], condition: str, subject_id: str) -> bool:
    name = table.__tablename__
    statement = f"""
        DELETE FROM "{name}" WHERE ctid = ANY (ARRAY(SELECT ctid FROM "{name}" WHERE {condition} LIMIT %(limit)s)) RETURNING 1
    """  # noqa: S608 - names of our own
    return bool(db.rows(statement, subject=subject_id, limit=BATCH))


_CALLS = """
    SELECT id FROM tool_call WHERE turn_id = ANY (ARRAY(SELECT id FROM turn WHERE session_id = %(session)s)) LIMIT %(limit)s
"""
_BEYOND_CALLS = "SELECT id FROM approval WHERE session_id = %(session)s AND tool_call_id IS NULL LIMIT %(limit)s"
_OF_APPROVALS = ("vote", "evidence", "link")
_ASKED = "SELECT id FROM approval WHERE tool_call_id = ANY (%(calls)s)"
_OF_CALLS = (
    *(f"DELETE FROM {name} WHERE approval_id = ANY (ARRAY({_ASKED}))" for name in _OF_APPROVALS),  # noqa: S608
    *(f"DELETE FROM {name} WHERE tool_call_id = ANY (%(calls)s)" for name in ("approval", "stored_result", "attempt")),  # noqa: S608
    "DELETE FROM tool_call WHERE id = ANY (%(calls)s)",
)
"""Statements that delete calls with all that refers to them, the referring rows first."""
_OF_SESSION: tuple[type[Any], ...] = (Event, Turn, Fold, Thread, InlineAgent, Work, Grant, Evidence, Link, StoredResult)
