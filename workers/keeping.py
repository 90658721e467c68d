"""The write at the end of a turn or a call, repeated until it is committed or the lease is lost."""

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

from models.audit.principal import system
from models.database.query import Query
from models.database.rows import Db, Stale
from models.database.transactions import ERRORS, is_transient, transact
from models.errors import NotFound
from models.flow.lock import lock_and_read, lock_with_calls
from models.session.locked import Locked
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.settings import settings
from workers.leases import Lease

log = logging.getLogger(__name__)


Held = TypeVar("Held", Turn, ToolCall)


def commit_held(
    row: Held,
    lease: Lease,
    verb: Callable[[Locked, Held], None],
    *rows: Query[Any],
    late: Callable[[Locked], None] | None = None,
) -> bool:
    """Run `verb` as `commit_with_retry` does, with the row as the transaction has it, if this worker still holds the row.

    `late` runs instead if another worker has the row, also after the lease was lost.
    """

    def change(locked: Locked) -> None:
        try:
            held_row = row.as_held(locked.db)
        except Stale:
            if late is None:
                raise
            late(locked)
        else:
            verb(locked, held_row)

    return commit_with_retry(row, lease, change, *rows, after_lease=late is not None)


def commit_with_retry(
    row: Turn | ToolCall,
    lease: Lease,
    verb: Callable[[Locked], None],
    *rows: Query[Any],
    after_lease: bool = False,
) -> bool:
    """Run `verb` on the locked session of a row, and repeat it after a transient database error. True if the last run wrote.

    Each run is a transaction. A COMMIT that raises an error may have written: then the repeated verb raises Stale. The function
    also ends when the lease is lost, because another worker may have the row; `after_lease` is for a verb that handles this case.
    The rows of the queries `rows` are read in the lock's round trip; `Db.get` then finds them. Raises database errors that are not
    transient.
    """
    pause = 0.1
    until = time.monotonic() + settings().lease_seconds
    while not lease.lost.is_set() or (after_lease and time.monotonic() < until):
        try:
            transact(row.workspace_id, lambda db: verb(_lock(db, row, *rows)))
        except (Stale, NotFound):
            return False
        except ERRORS as error:
            if not is_transient(error):
                raise
            log.warning("%s: the database failed (%s); the write is repeated", lease.id, type(error).__name__)
            time.sleep(pause)
            pause = min(2.0, pause * 2)
        else:
            return True
    return False


def _lock(db: Db, row: Turn | ToolCall, *queries: Query[Any]) -> Locked:
    """Return the locked session of a row. The same round trip reads the row, and for a call the other calls of its turn."""
    actor = system(row.TASK, row.workspace_id)
    if isinstance(row, ToolCall):
        return lock_with_calls(db, row.session_id, actor, *queries, of=row.id)[0]
    return lock_and_read(db, row.session_id, actor, Turn.by_id(row.id), *queries)[0]
