"""Transactions: the one way to the database. A transaction sees one workspace, and publishes its hints after its commit.

A row-level policy on every table compares `workspace_id` with the transaction's setting `assent.workspace`. So a query without a
workspace returns nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar, cast

import psycopg
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from models.database.exchange import Connection
from models.database.rows import Db
from models.database.trace import Span
from models.pure import ahead
from models.settings import settings

T = TypeVar("T")
Role = Literal["app", "system", "owner"]

# These limits reveal a silent network cut within about ten seconds instead of minutes.
_CONNECT: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}
_TIMEOUTS = "-c statement_timeout=5000 -c lock_timeout=2000 -c idle_in_transaction_session_timeout=10000"
"""The time limits of a connection. Behind a pooler the roles have them, by deploy/roles.sql."""
ERRORS = (psycopg.Error, PoolTimeout)
"""The errors of a failing database: psycopg's own, and a pool without a free connection."""

_TRANSIENT = ("08", "53", "57P", "40", "25P03", "55P03", "57014", "25006")
"""SQLSTATEs of transient faults, after which nothing was written: connections (08, 53, 57P), deadlock and serialization (40),
time-outs (25P03 idle in a transaction, 55P03 lock, 57014 statement), a read-only standby during a failover (25006)."""


@dataclass(frozen=True)
class Hint:
    """A queue message to send after the commit. It says that a row may be ready, and carries no state."""

    task: str
    args: tuple[str, ...]
    queue: str | None = None
    """A queue other than the task's own: the queue of the workers that have a toolset."""
    about: str = field(default="", compare=False)
    """The tool and the agent, for operators. No task reads it."""


@dataclass
class Outbox:
    """Messages to publish after the transaction's commit."""

    hints: list[Hint] = field(default_factory=list)
    sessions: dict[str, int] = field(default_factory=dict)
    """Last seq of each session with new events, for the readers of its stream."""
    workspaces: set[str] = field(default_factory=set)
    """Workspaces whose approvals changed, for the open pages of the inbox."""
    spans: list[Span] = field(default_factory=list)
    """Spans that the transaction ends."""


_pools: dict[tuple[int, Role, bool], QueuePool] = {}


def _send_nothing(_: Outbox) -> None:
    """The default, for a process that publishes no hints. The dispatch sweep finds every row."""


_is_open: ContextVar[bool] = ContextVar("is_open", default=False)
_send: Callable[[Outbox], None] = _send_nothing


def on_commit(publish: Callable[[Outbox], None]) -> None:
    """Call `publish` with each transaction's outbox after its commit. `workers.enqueue` sets it."""
    global _send  # noqa: PLW0603 - set once, at import, by the one module that may publish
    _send = publish


def pool(role: Role = "app", *, reserved: bool = False) -> QueuePool:
    """Return the process's connection pool for a role. Created at first use, so a fork never shares connections.

    `reserved`: the pool of the one connection that is kept for heartbeats, which must not wait for the process's work.
    """
    key = (os.getpid(), role, reserved)
    if key not in _pools:
        s = settings()
        url = {"app": s.database_url, "system": s.database_system_url, "owner": s.database_owner_url}[role]
        new = QueuePool(
            partial(_connect, url),
            pool_size=1 if reserved else s.database_pool_size,
            max_overflow=0,
            timeout=s.database_pool_timeout_seconds,
            use_lifo=True,  # prefers the connection whose prepared statements are in the server's caches
            reset_on_return=None,  # a transaction leaves nothing open
        )
        _pools.setdefault(key, new)  # another thread may have been first
    return _pools[key]


def _connect(url: str) -> Any:
    if not settings().database_pooler:
        return Connection.connect(url, autocommit=True, options=_TIMEOUTS, **_CONNECT)
    connection = Connection.connect(url, autocommit=True, **_CONNECT)
    connection.prepares = False
    return connection


def dispose() -> None:
    """Close the process's connections, in tests and before a fork."""
    for key in [key for key in _pools if key[0] == os.getpid()]:
        _pools.pop(key).dispose()


@contextmanager
def transaction(workspace_id: str = "", *, role: Role = "app", reserved: bool = False, only_reads: bool = False) -> Iterator[Db]:
    """Open one transaction, as `role`, that sees only `workspace_id`. Commits at the end, then publishes its outbox.

    `reserved` is as for `pool`, `only_reads` as for `Db`.

    A connection that is lost in COMMIT may have committed. It is dropped, and the caller reads again by fence. Every verb is a
    compare-and-swap, so calling the verb again does that. A transaction that Postgres refuses was not committed.
    """
    before = _is_open.set(True)
    try:
        pooled, connection = _take(pool(role, reserved=reserved))
        try:
            db = Db(connection, workspace_id, only_reads)
            try:
                yield db
                db.commit()
            except BaseException:
                db.roll_back()
                raise
        finally:
            if connection.closed:
                pooled.invalidate()
            pooled.close()
        _send(outbox(db))
    finally:
        _is_open.reset(before)


def transact(workspace_id: str, act: Callable[[Db], T], *, only_reads: bool = False) -> T:
    """Return what `act` returns for a transaction that sees only `workspace_id`, committed. `only_reads` is as for `Db`.

    If a calculation in it costs too much (`models.pure.ahead`), the transaction is rolled back, the calculation is done, and `act`
    is called again, in a new transaction.
    """
    results: dict[str, Any] = {}
    while True:
        try:
            with ahead.use_results(results), transaction(workspace_id, only_reads=only_reads) as db:
                return act(db)
        except ahead.Needed as needed:
            results[needed.key] = needed.calculate()


def is_open() -> bool:
    """True while the present thread or greenlet is in a transaction, which an interruption would leave half done."""
    return _is_open.get()


def _take(connections: QueuePool) -> tuple[PoolProxiedConnection, Connection]:
    """Return a pooled connection that the server has not closed, and psycopg's connection inside it."""
    while True:
        pooled = connections.connect()
        connection = cast("Connection", pooled.driver_connection)
        if not connection.hung_up():
            return pooled, connection
        pooled.invalidate()


def outbox(db: Db) -> Outbox:
    """Return the transaction's outbox."""
    messages: Outbox = db.info.setdefault("outbox", Outbox())
    return messages


def is_transient(error: Exception) -> bool:
    """True if the failure is transient: a connection, a time-out, a deadlock, a failover."""
    if isinstance(error, PoolTimeout):
        return True
    if not isinstance(error, psycopg.Error):
        return False
    return error.sqlstate.startswith(_TRANSIENT) if error.sqlstate else isinstance(error, psycopg.OperationalError)
