"""The write at the end of a turn or a call, repeated until it is committed or the lease is lost."""

import logging
import time
from collections.abc import Callable
from typing import Any

from models.database.query import Query
from models.database.rows import Db, Stale
from models.database.transactions import ERRORS, is_transient, transact
from models.errors import NotFound
from models.flow.lock import lock_and_read
from models.session.row import Session
from models.settings import settings
from workers.leases import Lease

log = logging.getLogger(__name__)


def keep(
    workspace_id: str,
    session_id: str,
    lease: Lease,
    verb: Callable[[Db, Session], None],
    *rows: Query[Any],
    even_late: bool = False,
) -> bool:
    """Run `verb` on the locked session in a transaction, and repeat after a transient database error. True if the last run wrote.

    A COMMIT that raises an error may have written: then the repeated verb raises Stale. The function also ends when the lease is
    lost, because another worker may have the row; `even_late` is for a verb that handles this case. The rows of the
    queries `rows` are read in the lock's round trip; `Db.get` then finds them. Raises database errors that are not transient.
    """
    pause = 0.1
    until = time.monotonic() + settings().lease_seconds
    while not lease.lost.is_set() or (even_late and time.monotonic() < until):
        try:
            transact(workspace_id, lambda db: verb(db, lock_and_read(db, session_id, *rows)[0]))
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
