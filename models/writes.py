"""Plain writes: what the verbs insert and update, queued until the transaction reads or commits."""

from functools import cache
from typing import Any

import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapper
from sqlalchemy.orm.attributes import instance_state, set_committed_value

from models.pipeline import Db, Stale, Statement, queue
from models.pure import states
from models.rows import attach, columns_of, identity, key_of

__all__ = ["Stale", "insert", "move", "save", "save_all", "write"]


def move(db: Db, row: Any, to: str, **values: Any) -> None:
    """The one way to change a status: compare-and-swap on status (and fence, where the row has one), by the table in `states`.

    Raises ValueError when the tables know no such transition; Stale, when it is sent, if the row is no longer as `row` has it.
    """
    states.check(row.__tablename__, row.status, to)
    changed = {"status": to, **values}
    guard = ("status", "fence") if hasattr(row, "fence") else ("status",)
    _update(db, row, changed, guard, otherwise=f"{row.__tablename__} {row.id} is no longer {row.status}")


def save(db: Db, row: Any, otherwise: str = "") -> None:
    """Write the attributes of a row that changed. One that is not locked may be gone: `otherwise` is what Stale then says."""
    state = instance_state(row)
    before = state.committed_state
    changed = {key: getattr(row, key) for key in columns_of(state.mapper) if key in before}
    if changed:
        _update(db, row, changed, otherwise=otherwise)
    # Or the unit of work looks for what is left to write of it.
    state._commit_all(row.__dict__, db.identity_map if db.is_of_the_orm else None)


def save_all(db: Db) -> None:
    """Write what changed of all the transaction's rows, and was not written yet."""
    if db.is_of_the_orm:
        db.flush()
        return
    for row in db.rows.values():
        if instance_state(row).modified:
            save(db, row, otherwise=f"a row of {row.__tablename__} is gone")


def insert(db: Db, row: Any) -> None:
    """Insert a new row, made by `rows.made` or by the ORM; what it has no value for has its column's default."""
    state = instance_state(row)
    columns = columns_of(state.mapper)
    for key, column in columns.items():
        row.__dict__.setdefault(key, getattr(column.default, "arg", None))
    write(db, _insert_of(state.mapper), {key: _given(column, row.__dict__[key]) for key, column in columns.items()})
    state._commit_all(row.__dict__)
    attach(db, row, identity(state.mapper, row.__dict__))


def write(db: Db, statement: str, values: dict[str, Any]) -> None:
    """Queue one statement in psycopg's notation."""
    queue(db, Statement(statement, values))


def _update(db: Db, row: Any, changed: dict[str, Any], guard: tuple[str, ...] = (), otherwise: str = "") -> None:
    mapper = instance_state(row).mapper
    columns = columns_of(mapper)
    values = {key: _given(columns[key], value) for key, value in changed.items()}
    values |= {f"was_{key}": getattr(row, key) for key in (*key_of(mapper), *guard)}
    if otherwise:
        values["otherwise"] = otherwise
    write(db, _update_of(mapper, tuple(changed), guard, still=bool(otherwise)), values)
    for key, value in changed.items():
        set_committed_value(row, key, value)


def _given(column: "sa.ColumnElement[Any]", value: Any) -> Any:
    return Jsonb(value) if value is not None and isinstance(column.type, JSONB) else value


_STILL = "SELECT assent_still(EXISTS (SELECT FROM moved), %(otherwise)s)"


@cache
def _insert_of(mapper: Mapper[Any]) -> str:
    names = ", ".join(f'"{column.key}"' for column in columns_of(mapper).values())
    marks = ", ".join(f"%({key})s" for key in columns_of(mapper))
    return f'INSERT INTO "{mapper.local_table}" ({names}) VALUES ({marks})'  # noqa: S608 - our own names


@cache
def _update_of(mapper: Mapper[Any], keys: tuple[str, ...], guard: tuple[str, ...], *, still: bool) -> str:
    columns = columns_of(mapper)
    changed = ", ".join(f'"{columns[key].key}" = %({key})s' for key in keys)
    where = " AND ".join(f'"{columns[key].key}" = %(was_{key})s' for key in (*key_of(mapper), *guard))
    update = f'UPDATE "{mapper.local_table}" SET {changed} WHERE {where}'  # noqa: S608 - our own names
    if not still:
        return update
    return f"WITH moved AS ({update} RETURNING 1) {_STILL}"
