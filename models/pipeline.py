"""What goes to Postgres in one round trip: statements queue on the connection and leave together, in order.

A statement of its own costs a round trip and, through the ORM, many times what psycopg takes for it. So what the verbs write is
queued here, the transaction's BEGIN first of all, and leaves in one message: with what is read next, so that this reads what was
written, or before the commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session as Db

from models.driver import Connection

_QUEUE = "assent.queue"


class Stale(Exception):
    """A compare-and-swap found that somebody else had moved the row: do nothing more with it."""


@dataclass(frozen=True)
class Statement:
    """One statement, in psycopg's notation, with its values."""

    text: str
    values: dict[str, Any]
    stale: str | None = None
    """Said by Stale if the statement meets no row, where it must meet one."""
    opens: bool = False
    """Whether it only opens the transaction, and need not be sent if nothing follows."""


def begin(connection: sa.Connection, workspace_id: str) -> None:
    """Let what comes next open a transaction for a workspace. The connection commits by itself otherwise."""
    workspace = Statement(_WORKSPACE, {"workspace": workspace_id}, opens=True)
    connection.info[_QUEUE] = [Statement("BEGIN", {}, opens=True), workspace]


_WORKSPACE = "SELECT set_config('assent.workspace', %(workspace)s, true)"


def queue(db: Db, statement: Statement) -> None:
    """Have it sent with whatever is sent next."""
    db.connection().info[_QUEUE].append(statement)


def ask(db: Db, *statements: Statement) -> list[list[tuple[Any, ...]]]:
    """The rows of each of these, in one round trip. Raises as `send`."""
    return send(db.connection(), statements)


def settle(db: Db) -> None:
    """Send what is queued; a transaction that did nothing is not even opened. Raises as `send`."""
    connection = db.connection()
    if not all(each.opens for each in connection.info[_QUEUE]):
        send(connection)


def forget(_connection: Any, record: sa.pool.ConnectionPoolEntry) -> None:
    """Drop what was never sent, as the connection goes back to its pool."""
    record.info.pop(_QUEUE, None)


def send(connection: sa.Connection, asked: tuple[Statement, ...] = ()) -> list[list[tuple[Any, ...]]]:
    """Send what is queued, and behind it what is asked; the rows of each that is asked.

    Raises Stale, or SQLAlchemy's errors; the transaction is then good for nothing but a rollback.
    """
    statements = [*connection.info.get(_QUEUE, ()), *asked]
    if not statements:
        return []
    with _spoken(connection) as driver:
        cursors = driver.exchange([(each.text, each.values) for each in statements])
        connection.info[_QUEUE] = []  # not before: what could not even be sent has opened nothing
        for each, cursor in zip(statements, cursors, strict=True):
            if each.stale and cursor.rowcount != 1:
                raise Stale(each.stale)
        return [cursor.fetchall() for cursor in cursors[len(cursors) - len(asked) :]]


def is_alive(connection: sa.Connection) -> bool:
    """Whether the server has not hung up on a pooled connection."""
    return not _driver(connection).hung_up()


@contextmanager
def _spoken(connection: sa.Connection) -> Iterator[Connection]:
    """psycopg's own connection; its errors are raised as SQLAlchemy raises them, so that there is one kind to catch."""
    driver = _driver(connection)
    try:
        yield driver
    except psycopg.Error as error:
        lost = driver.closed
        if lost:
            connection.invalidate(error)
        said = DBAPIError.instance(
            None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=lost, dialect=connection.dialect
        )
        raise said from error


def _driver(connection: sa.Connection) -> Connection:
    return cast("Connection", connection.connection.driver_connection)
