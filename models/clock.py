"""The only clock: the database's.

`assent_now()` is a function of the database, owned by `assent_owner`, that returns `clock_timestamp()`: real time, even late in a
long transaction. Tests move time for every process at once by replacing it; the running roles cannot.
"""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, DateTime, Interval, cast, func, select

from models.db import Db
from models.pipeline import Statement, ask

DB_NOW: ColumnElement[datetime] = func.assent_now(type_=DateTime(timezone=True))
"""For use inside statements, where it must be read late: behind a lock."""


STARTED: ColumnElement[datetime] = select(DB_NOW).scalar_subquery()
"""The same, read once when a statement starts: a column compared with it is looked up in its index, not row by row."""


NOW = Statement("SELECT assent_now()", {})
"""Asks for it."""


def now(db: Db) -> datetime:
    """The database's time, aware, in UTC. Read it after the lock that you decide under."""
    [[(found,)]] = ask(db, NOW)
    at: datetime = found
    return at


def ahead(seconds: float) -> ColumnElement[datetime]:
    """`seconds` from the start of the statement."""
    return STARTED + cast(timedelta(seconds=seconds), Interval)
