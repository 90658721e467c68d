"""Deletes sessions whose workspace keeps archived content no longer: all of it is in the archive, and its last event is too old."""

from dataclasses import dataclass
from datetime import timedelta

from models.audit import legal_hold
from models.audit.principal import system
from models.database.clock import STARTED
from models.database.failure import steps_back
from models.database.rows import Db
from models.database.transactions import transaction
from models.flow.begin import sessions
from models.session.archive.part import ArchivePart
from models.session.locked import try_lock

TASK = "delete_archived"
BATCH = 200
"""Most sessions that a sweep takes."""


@dataclass(frozen=True)
class OldSession:
    """A session that may be deleted."""

    id: str
    workspace_id: str


def due() -> list[OldSession]:
    """Return sessions that may be deleted, at most BATCH, those with the oldest last event first. Sessions on hold are left out."""
    with transaction(role="system") as db:
        return [OldSession(*row) for row in db.rows(_DUE, most=BATCH)]


def delete(session: OldSession) -> bool:
    """Delete a session as a request does. Returns False if it has to stay: it was used again, or is on a legal hold."""
    with transaction(session.workspace_id) as db:
        locked = try_lock(db, session.id, system(f"sweep.{TASK}", session.workspace_id))
        days = (db.value(_RETENTION) or {}).get("archived_days")
        if locked is None or days is None or legal_hold.find(db, session.id):
            return False
        if not _is_old(db, session.id, locked.session.last_seq, timedelta(days=days)):
            return False
        sessions.delete(locked)
        return True


def _is_old(db: Db, session_id: str, last_seq: int, keep_time: timedelta) -> bool:
    """True if the last event of a session is in the archive, and older than this. Then nothing of the session is under way."""
    last = ArchivePart.after_event(db, session_id, last_seq - 1)
    return bool(last) and bool(db.value(f"SELECT %(until)s < {STARTED} - %(keep_time)s", until=last[-1].until, keep_time=keep_time))


_RETENTION = "SELECT retention FROM workspace WHERE id = current_setting('assent.workspace')"
_DUE = f"""
    SELECT first.id, workspace.id FROM workspace CROSS JOIN LATERAL (
        SELECT session.id, part.until FROM archive_part part JOIN session ON session.id = part.session_id
        WHERE part.workspace_id = workspace.id AND part.status = 'kept'
        AND part.until < {STARTED} - (workspace.retention ->> 'archived_days')::integer * interval '1 day'
        AND part.last_seq = session.last_seq AND session.archived_through = session.last_seq
        AND NOT {legal_hold.held_sql("workspace.id", "session.id")} AND NOT {steps_back(TASK, "session.id")}
        ORDER BY part.until LIMIT %(most)s
    ) first WHERE workspace.retention ? 'archived_days' ORDER BY first.until LIMIT %(most)s
"""  # noqa: S608 - text of our own
