"""Transactions. One function opens them, for one workspace at a time, and sends what they caused after they committed.

A row-level policy on every table compares `workspace_id` with the transaction's setting `assent.workspace`, so that a query that
forgets its workspace finds nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import DeclarativeBase

from models import driver, json_codec
from models.pipeline import Db, Pipeline
from models.settings import settings
from models.writes import save_all

__all__ = [
    "Appends",
    "Base",
    "Db",
    "Hint",
    "MissingUrl",
    "Outbox",
    "dispose",
    "engine",
    "on_commit",
    "outbox",
    "passes",
    "transaction",
]

Role = Literal["app", "system", "owner"]

# A silent network cut is noticed within about ten seconds instead of minutes.
_CONNECT: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
    "options": "-c statement_timeout=5000 -c lock_timeout=2000 -c idle_in_transaction_session_timeout=10000",
}


# What Postgres says when the fault is passing and nothing was done: connections (08, 53, 57P), deadlock and serialization (40),
# lock and statement time-outs (55P03, 57014), a read-only standby during a failover (25006).
_PASSING = ("08", "53", "57P", "40", "55P03", "57014", "25006")


class MissingUrl(Exception):
    """This process was not given the URL of a role, by intention or not."""


class Base(DeclarativeBase):
    """Every table's base."""


@dataclass(frozen=True)
class Hint:
    """A queue message to send after commit: it says that a row may be ready, and is true of nothing by itself."""

    task: str
    args: tuple[str, ...]
    queue: str | None = None
    """Other than the task's own: of the workers that have a toolset."""


class Appends(Protocol):
    """A row that collects what its transaction appends, to write it all at once at the end."""

    def write(self, db: Db) -> None:
        """Write what was collected since the last write."""
        ...


@dataclass
class Outbox:
    """What a transaction wants said once it has committed."""

    hints: list[Hint] = field(default_factory=list)
    sessions: dict[str, int] = field(default_factory=dict)
    """Sessions with new events and their last seq, for the readers of their streams."""
    unwritten: list[Appends] = field(default_factory=list)
    """What is to be written before the commit."""


_engines: dict[tuple[int, Role], sa.Engine] = {}


def _say_nothing(_: Outbox) -> None:
    """Nobody publishes in this process."""


_send: Callable[[Outbox], None] = _say_nothing


def on_commit(send: Callable[[Outbox], None]) -> None:
    """Have `send` called with every outbox after its commit. `workers.enqueue` does; without it the dispatch sweep finds all."""
    global _send  # noqa: PLW0603 - set once, at import, by the one module that may publish
    _send = send


def engine(role: Role = "app") -> sa.Engine:
    """The process's engine for a role; made on first use, so never shared over a fork."""
    key = (os.getpid(), role)
    if key not in _engines:
        s = settings()
        url = {"app": s.database_url, "system": s.database_system_url, "owner": s.database_owner_url}[role]
        if not url:
            raise MissingUrl(f"DATABASE_{role.upper()}_URL is not set: this process cannot act as assent_{role}")
        made = _engines[key] = sa.create_engine(
            sa.make_url(url).set(drivername="postgresql+psycopg"),
            isolation_level="AUTOCOMMIT",  # a transaction begins by its pipeline, with its first statement
            pool_size=s.database_pool_size,
            max_overflow=0,
            pool_use_lifo=True,  # the connection whose caches are warm
            pool_reset_on_return=None,  # a pipeline leaves nothing open
            json_serializer=json_codec.encode,
            json_deserializer=json_codec.decode,
            hide_parameters=True,  # an error in a log must not say what was in the row
            pool_timeout=s.database_pool_timeout_seconds,
            connect_args=_CONNECT,
        )
        sa.event.listen(made, "do_connect", lambda _dialect, _record, args, options: driver.kind().connect(*args, **options))
    return _engines[key]


def dispose() -> None:
    """Close the process's connections (tests; before a fork)."""
    for key in [k for k in _engines if k[0] == os.getpid()]:
        _engines.pop(key).dispose()


@contextmanager
def transaction(workspace_id: str = "", *, role: Role = "app") -> Iterator[Db]:
    """One transaction, as `role`, that sees only `workspace_id`. Commits at the end, then sends its outbox.

    A connection that is lost in COMMIT does not say that nothing was committed: it is dropped, and who wants to know reads again by
    fence (every verb is a compare-and-swap, so calling it again is that). What Postgres itself refuses was not committed.
    """
    pipeline = Pipeline(engine(role), workspace_id)
    try:
        with Db(pipeline) as db:
            try:
                yield db
                for row in outbox(db).unwritten:
                    row.write(db)
                save_all(db)
                pipeline.commit()
            except BaseException:
                pipeline.roll_back()
                raise
    finally:
        pipeline.give_back()
    _send(outbox(db))


def outbox(db: Db) -> Outbox:
    """The transaction's outbox."""
    if "outbox" not in db.info:
        db.info["outbox"] = Outbox()
    box: Outbox = db.info["outbox"]
    return box


def passes(error: Exception) -> bool:
    """Whether a database's failure may be gone in a moment: connections, time-outs, deadlocks, a failover. All else is for good."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, (PoolTimeout, DisconnectionError))
    state = getattr(error.orig, "sqlstate", None) or ""
    if not state:
        return error.connection_invalidated or isinstance(error.orig, psycopg.OperationalError)
    return error.connection_invalidated or state.startswith(_PASSING)
