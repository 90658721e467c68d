"""The sweeps that delete: old rows, old archived sessions, and the rows of what people deleted."""

import logging
import time

import psycopg

from models.operate import archive_retention, due, retention
from models.operate.failing import isolated
from models.operate.removals import remove_batch
from workers.celery import app
from workers.outcome import MOST_SECONDS, Sweep, did

log = logging.getLogger(__name__)


@app.task(name="sweep.delete_old", base=Sweep)
def delete_old() -> str:
    """Delete old rows of each table of `retention.OLD`, batch by batch, until none is left or the time is over."""
    until, deleted = time.monotonic() + MOST_SECONDS, 0
    tables = list(retention.OLD)
    while tables and time.monotonic() < until:
        counts = {old: _delete_batch(old) for old in tables}
        deleted += sum(counts.values())
        tables = [old for old, count in counts.items() if count >= retention.BATCH]
    return did("deleted rows:", deleted)


def _delete_batch(old: retention.Old) -> int:
    """Delete one batch, and return how many rows. Returns 0 after an error, so that the other tables do not wait."""
    try:
        return retention.delete_old(old)
    except psycopg.Error as error:
        log.error("old rows of %s are left for a later sweep (%s)", old.table, type(error).__name__)
        return 0


@app.task(name="sweep.delete_archived", base=Sweep)
def delete_archived() -> str:
    """Delete sessions whose workspace keeps archived content no longer, until none is left or the time is over."""
    until, deleted = time.monotonic() + MOST_SECONDS, 0
    for session in archive_retention.due():
        if time.monotonic() >= until:
            break
        with isolated(archive_retention.TASK, session.id, session.workspace_id):
            deleted += archive_retention.delete(session)
    return did("deleted archived sessions:", deleted)


@app.task(name="sweep.remove_deleted", base=Sweep)
def remove_deleted() -> str:
    """Remove the rows of deleted sessions and endpoints, batch by batch, until none is left or the time is over."""
    until = time.monotonic() + MOST_SECONDS
    rows = deleted = due.removals()
    while rows and time.monotonic() < until:
        rows = [row for row in rows if _has_more(row)]
    return did("removed", len(deleted) - len(rows)) or did("still removing", len(rows))


def _has_more(row: due.Due) -> bool:
    """Remove one batch. Returns False once no row is left, or after an error."""
    with isolated("remove_deleted", row.id, row.workspace_id):
        if remove_batch(row.workspace_id, row.id):
            return True
    return False
