"""The database's clock, the only one.

`assent_now()` is a function of the database, owned by `assent_owner`. It returns `clock_timestamp()`, so the time advances within a
transaction. Tests replace the function to move time for every process at once; the running roles cannot.
"""

from datetime import datetime

from models.database.exchange import Statement
from models.database.rows import Db

STARTED = "(SELECT assent_now())"
"""SQL for the time at which a statement starts. A comparison with it can use an index.

After a lock in the same statement, use `assent_now()` itself: its value is read late."""

NOW = Statement("SELECT assent_now()", {})
"""Reads the time."""


def now(db: Db) -> datetime:
    """Return the database's time, aware, in UTC. Read it after taking the lock under which you decide."""
    at: datetime = db.value(NOW.sql)
    return at
