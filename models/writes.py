"""Plain writes: collected as the verbs ask for them, and sent together.

A statement of its own costs a round trip and, through the unit of work, many times what psycopg takes for it. So what the verbs
insert and update is queued on the connection and leaves in one pipeline, in order: before whatever the transaction executes next,
so that it reads what it wrote, and before its commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import psycopg
import sqlalchemy as sa
from psycopg.sql import SQL
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Mapper, make_transient_to_detached
from sqlalchemy.orm import Session as Db
from sqlalchemy.orm.attributes import set_committed_value

from models.pure import states

_QUEUE = "assent.writes"
_BEGIN = SQL("BEGIN; SELECT set_config('assent.workspace', {}, true)")


class Stale(Exception):
    """A compare-and-swap found that somebody else had moved the row: do nothing more with it."""


@dataclass(frozen=True)
class _Write:
    """One statement that waits to be sent."""

    statement: str
    values: dict[str, Any]
    stale: str | None
    """Said by Stale if the statement meets no row; None where that is no matter."""


def move(db: Db, row: Any, to: str, **values: Any) -> None:
    """The one way to change a status: compare-and-swap on status (and fence, where the row has one), by the table in `states`.

    Raises ValueError when the tables know no such transition; Stale, when it is sent, if the row is no longer as `row` has it.
    """
    states.check(row.__tablename__, row.status, to)
    changed = {"status": to, **values}
    guard = ("id", "status", "fence") if hasattr(row, "fence") else ("id", "status")
    _update(db, row, changed, guard, f"{row.__tablename__} {row.id} is no longer {row.status}")


def save(db: Db, row: Any) -> None:
    """Write the attributes of a locked row that changed."""
    state = sa.inspect(row)
    before = state.committed_state
    changed = {key: getattr(row, key) for key in _columns(state.mapper) if key in before}
    if changed:
        _update(db, row, changed, ("id",), None)


def insert(db: Db, row: Any) -> None:
    """Insert a new row."""
    mapper = sa.inspect(row).mapper
    columns = _columns(mapper)
    for key, column in columns.items():
        if key not in row.__dict__:
            setattr(row, key, getattr(column.default, "arg", None))
    write(db, _insert_of(mapper), {key: _given(column, getattr(row, key)) for key, column in columns.items()})
    make_transient_to_detached(row)
    db.add(row)


def write(db: Db, statement: str, values: dict[str, Any], stale: str | None = None) -> None:
    """Queue one statement in psycopg's notation. If it must meet one row, `stale` says what it means that it does not."""
    db.connection().info.setdefault(_QUEUE, []).append(_Write(statement, values, stale))


def send(connection: sa.Connection) -> None:
    """Send what is queued. Raises Stale, or SQLAlchemy's errors; the transaction is then good for nothing but a rollback."""
    queued: list[_Write] = connection.info.get(_QUEUE) or []
    if not queued:
        return
    connection.info[_QUEUE] = []
    with _spoken(connection) as driver:
        if len(queued) == 1:
            cursors = [driver.execute(queued[0].statement, queued[0].values)]
        else:
            with driver.pipeline():
                cursors = [driver.execute(one.statement, one.values) for one in queued]
    for one, cursor in zip(queued, cursors, strict=True):
        if one.stale and cursor.rowcount != 1:
            raise Stale(one.stale)


def begin(connection: sa.Connection, workspace_id: str) -> None:
    """Open the transaction for a workspace, in one message. The connection commits by itself otherwise."""
    connection.info[_QUEUE] = []
    with _spoken(connection) as driver:
        driver.execute(_BEGIN.format(workspace_id), prepare=False)


@contextmanager
def _spoken(connection: sa.Connection) -> Iterator["psycopg.Connection[Any]"]:
    """psycopg's own connection; its errors are raised as SQLAlchemy raises them, so that there is one kind to catch."""
    driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
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


def _update(db: Db, row: Any, changed: dict[str, Any], guard: tuple[str, ...], stale: str | None) -> None:
    mapper = sa.inspect(row).mapper
    columns = _columns(mapper)
    values = {key: _given(columns[key], value) for key, value in changed.items()}
    values |= {f"was_{key}": getattr(row, key) for key in guard}
    write(db, _update_of(mapper, tuple(changed), guard), values, stale)
    for key, value in changed.items():
        set_committed_value(row, key, value)


def _given(column: "sa.ColumnElement[Any]", value: Any) -> Any:
    return Jsonb(value) if value is not None and isinstance(column.type, JSONB) else value


@cache
def _columns(mapper: Mapper[Any]) -> dict[str, "sa.ColumnElement[Any]"]:
    """A table's columns by the names of their attributes."""
    return {attribute.key: attribute.columns[0] for attribute in mapper.column_attrs}


@cache
def _insert_of(mapper: Mapper[Any]) -> str:
    names = ", ".join(f'"{column.key}"' for column in _columns(mapper).values())
    marks = ", ".join(f"%({key})s" for key in _columns(mapper))
    return f'INSERT INTO "{mapper.local_table}" ({names}) VALUES ({marks})'  # noqa: S608 - our own names


@cache
def _update_of(mapper: Mapper[Any], keys: tuple[str, ...], guard: tuple[str, ...]) -> str:
    columns = _columns(mapper)
    changed = ", ".join(f'"{columns[key].key}" = %({key})s' for key in keys)
    where = " AND ".join(f'"{columns[key].key}" = %(was_{key})s' for key in guard)
    return f'UPDATE "{mapper.local_table}" SET {changed} WHERE {where}'  # noqa: S608 - our own names
