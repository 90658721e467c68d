"""Rows as the verbs have them: read by statements of our own, or made; the ORM takes several times as long for either.

They are the ORM's rows all the same: one object per row and transaction, whoever reads it.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Mapper
from sqlalchemy.orm.attributes import instance_state, set_committed_value

from models.pipeline import Db, Statement, ask

T = TypeVar("T")


def find(db: Db, table: type[T], clauses: str, **values: Any) -> list[T]:
    """The rows of a table that `clauses` tell: FROM and all that follows, in psycopg's notation."""
    return loaded(db, table, ask(db, selected(table, clauses, **values))[0])


def selected(table: type[Any], clauses: str, **values: Any) -> Statement:
    """The statement for that, to be asked with others; `loaded` takes its answer."""
    return Statement(_select(_mapper(table), clauses), values)


def loaded(db: Db, table: type[T], records: Iterable[tuple[Any, ...]], *, anew: bool = False) -> list[T]:
    """The rows that were answered. `anew`: one that the transaction has read before is now as answered."""
    mapper = _mapper(table)
    return [_row(db, mapper, record, anew) for record in records]


def made(table: type[T], **values: Any) -> T:
    """A row that is none of a transaction's, as quickly as Python makes an object."""
    row: T = _mapper(table).class_manager.new_instance()
    row.__dict__.update(values)
    return row


def attach(db: Db, row: Any, key: Any) -> None:
    """Have it be a transaction's, as the one with that identity key."""
    state = instance_state(row)
    state.key = key
    db.rows[key] = row
    if db.is_of_the_orm:
        db.adopt(state)


def column_list(table: type[Any]) -> str:
    """A table's columns as SQL, in the order in which `loaded` takes them."""
    return _column_list(_mapper(table))


@cache
def columns_of(mapper: Mapper[Any]) -> dict[str, "sa.ColumnElement[Any]"]:
    """A table's columns by the names of their attributes."""
    return {attribute.key: attribute.columns[0] for attribute in mapper.column_attrs}


@cache
def _column_list(mapper: Mapper[Any]) -> str:
    return ", ".join(f'"{column.key}"' for column in columns_of(mapper).values())


@cache
def _select(mapper: Mapper[Any], clauses: str) -> str:
    return f"SELECT {_column_list(mapper)} {clauses}"


def _mapper(table: type[T]) -> Mapper[T]:
    """What `sa.inspect` would give, which looks for it in more places."""
    mapper: Mapper[T] = table.__mapper__  # type: ignore[attr-defined]
    return mapper


def _row(db: Db, mapper: Mapper[T], record: tuple[Any, ...], anew: bool) -> T:
    values = dict(zip(columns_of(mapper), record, strict=True))
    key = identity(mapper, values)
    known = db.rows.get(key)
    if known is None and db.is_of_the_orm:
        known = db.identity_map.get(key)
    if known is not None:
        row: T = known
        if anew:
            for name, value in values.items():
                set_committed_value(row, name, value)
        return row
    row = made(mapper.class_, **values)
    attach(db, row, key)
    return row


def identity(mapper: Mapper[Any], values: dict[str, Any]) -> Any:
    """The identity key of a row with these values."""
    return mapper.identity_key_from_primary_key(tuple(values[name] for name in key_of(mapper)))


@cache
def key_of(mapper: Mapper[Any]) -> tuple[str, ...]:
    """The attributes of its primary key."""
    return tuple(mapper.get_property_by_column(column).key for column in mapper.primary_key)
