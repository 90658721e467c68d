"""Transactions. One function opens them, for one workspace at a time, and sends what they caused after they committed.

A row-level policy on every table compares `workspace_id` with the transaction's setting `assent.workspace`, so that a query that
forgets its workspace finds nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, cast

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import DeclarativeBase, Mapper, make_transient_to_detached
from sqlalchemy.orm import Session as Db
from sqlalchemy.orm.attributes import set_committed_value

from models.pure import states
from models.settings import settings

__all__ = [
    "Appends",
    "Base",
    "Db",
    "Hint",
    "Outbox",
    "Stale",
    "dispose",
    "engine",
    "move",
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


class Base(DeclarativeBase):
    """Every table's base."""


class Stale(Exception):
    """A compare-and-swap found that somebody else had moved the row: do nothing more with it."""


@dataclass(frozen=True)
class Hint:
    """A queue message to send after commit: it says that a row may be ready, and is true of nothing by itself."""

    task: str
    args: tuple[str, ...]


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
        _engines[key] = sa.create_engine(
            sa.make_url(url).set(drivername="postgresql+psycopg"),
            pool_size=s.database_pool_size,
            max_overflow=0,
            hide_parameters=True,  # an error in a log must not say what was in the row
            pool_timeout=s.database_pool_timeout_seconds,
            connect_args=_CONNECT,
        )
    return _engines[key]


def dispose() -> None:
    """Close the process's connections (tests; before a fork)."""
    for key in [k for k in _engines if k[0] == os.getpid()]:
        _engines.pop(key).dispose()


@contextmanager
def transaction(workspace_id: str = "", *, role: Role = "app") -> Iterator[Db]:
    """One transaction, as `role`, that sees only `workspace_id`. Commits at the end, then sends its outbox.

    An exception out of COMMIT does not say that nothing was committed: the connection is dropped, and who wants to know reads again
    by fence (every verb is a compare-and-swap, so calling it again is that).
    """
    db = _begin(workspace_id, role)
    try:
        yield db
        for row in outbox(db).unwritten:
            row.write(db)
        db.flush()
        try:
            db.commit()
        except BaseException:
            db.invalidate()
            raise
    except BaseException:
        db.rollback()
        raise
    finally:
        db.close()
    _send(outbox(db))


def _begin(workspace_id: str, role: Role) -> Db:
    """A database handle with its workspace set. A pooled connection that died meanwhile is replaced, once."""
    for last in (False, True):
        db = Db(engine(role), autoflush=False, expire_on_commit=False)
        try:
            db.connection().exec_driver_sql("SELECT set_config('assent.workspace', %s, true)", (workspace_id,))
        except DBAPIError as error:
            db.close()
            if last or not error.connection_invalidated:
                raise
        except BaseException:
            db.close()
            raise
        else:
            return db
    raise AssertionError("unreachable")


def outbox(db: Db) -> Outbox:
    """The transaction's outbox."""
    box: Outbox = db.info.setdefault("outbox", Outbox())
    return box


def move(db: Db, row: Any, to: str, **values: Any) -> None:
    """The one way to change a status: compare-and-swap on status (and fence, where the row has one), by the table in `states`.

    Raises Stale when the row is no longer as `row` has it, ValueError when the tables know no such transition.
    """
    states.check(row.__tablename__, row.status, to)
    changed = {"status": to, **values}
    guard = {"was_id": row.id, "was_status": row.status}
    if hasattr(row, "fence"):
        guard["was_fence"] = row.fence
    if db.connection().execute(_update(sa.inspect(row).mapper, tuple(changed), tuple(guard)), changed | guard).rowcount != 1:
        raise Stale(f"{row.__tablename__} {row.id} is no longer {row.status}")
    for key, value in changed.items():
        set_committed_value(row, key, value)


def insert(db: Db, row: Any) -> None:
    """Insert a new row now. Plain statements, here and in `save`, cost a third of what the unit of work takes for the same."""
    mapper = sa.inspect(row).mapper
    columns = _columns(mapper)
    for key, column in columns.items():
        if key not in row.__dict__:
            setattr(row, key, getattr(column.default, "arg", None))
    db.connection().execute(_insert(mapper), {str(column.key): getattr(row, key) for key, column in columns.items()})
    make_transient_to_detached(row)
    db.add(row)


def save(db: Db, row: Any) -> None:
    """Write the attributes of a locked row that changed, in one plain statement."""
    state = sa.inspect(row)
    columns, before = _columns(state.mapper), state.committed_state
    changed = {key: getattr(row, key) for key in columns if key in before}
    if changed:
        db.connection().execute(_update(state.mapper, tuple(changed), ("was_id",)), changed | {"was_id": row.id})
    for key, value in changed.items():
        set_committed_value(row, key, value)


def passes(error: Exception) -> bool:
    """Whether a database's failure may be gone in a moment: connections, time-outs, deadlocks, a failover. All else is for good."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, (PoolTimeout, DisconnectionError))
    state = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or not state or state.startswith(_PASSING)


@cache
def _columns(mapper: Mapper[Any]) -> dict[str, "sa.ColumnElement[Any]"]:
    """A table's columns by the names of their attributes."""
    return {attribute.key: attribute.columns[0] for attribute in mapper.column_attrs}


@cache
def _insert(mapper: Mapper[Any]) -> sa.Insert:
    return sa.insert(cast(sa.Table, mapper.local_table))


@cache
def _update(mapper: Mapper[Any], keys: tuple[str, ...], guard: tuple[str, ...]) -> sa.Update:
    columns = _columns(mapper)
    where = [columns[name.removeprefix("was_")] == sa.bindparam(name) for name in guard]
    values = {columns[key]: sa.bindparam(key, type_=columns[key].type) for key in keys}
    return sa.update(cast(sa.Table, mapper.local_table)).where(*where).values(values)
