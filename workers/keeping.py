"""The write at the end of a turn or a call: tried until it is committed or the row is somebody else's."""

import logging
import time
from collections.abc import Callable

from models import flow
from models.database.rows import Db, Stale
from models.database.transactions import ERRORS, passes, transaction
from models.errors import NotFound
from models.session.session import Session
from models.settings import settings
from workers.leases import Lease

log = logging.getLogger(__name__)


def keep(
    workspace_id: str,
    session_id: str,
    lease: Lease,
    verb: Callable[[Db, Session], None],
    *,
    even_late: bool = False,
) -> bool:
    """Run `verb` on the locked session in a transaction, again after a passing failure of the database. True if written here.

    An error out of COMMIT may have committed: the verb then finds the row moved (Stale), and that is that. Ends also when
    the lease is lost: whoever has the row now decides; `even_late` is for a verb that knows what to do then. What the database
    will never take is raised.
    """
    pause = 0.1
    until = time.monotonic() + settings().lease_seconds
    while not lease.lost.is_set() or (even_late and time.monotonic() < until):
        try:
            with transaction(workspace_id) as db:
                verb(db, flow.lock(db, session_id))
        except (Stale, NotFound):
            return False
        except ERRORS as error:
            if not passes(error):
                raise
            log.warning("%s: the database failed (%s), trying again", lease.id, type(error).__name__)
            time.sleep(pause)
            pause = min(2.0, pause * 2)
        else:
            return True
    return False
