"""The only clock: the database's.

`assent_now()` is a function of the database, owned by `assent_owner`, that returns `clock_timestamp()`: real time, even late in a
long transaction. Tests move time for every process at once by replacing it; the running roles cannot.
"""

from datetime import datetime

from models.database.exchange import Statement
from models.database.rows import Db

STARTED = "(SELECT assent_now())"
"""SQL for the time at which a statement starts. A column compared with it is looked up in its index, not row by row.

Behind a lock use `assent_now()` itself, which is read late."""

NOW = Statement("SELECT assent_now()", {})
"""Reads the time."""


def now(db: Db) -> datetime:
    """The database's time, aware, in UTC. Read it after the lock that you decide under."""
    at: datetime = db.value(NOW.sql)
    return at
