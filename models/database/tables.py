"""The tables' base class, and the SQL that reads and writes their rows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import declared_columns
from models.pure.json.codec import encode


class Hex(sa.LargeBinary):
    """Bytes that the rows hold as hexadecimal digits, such as a SHA-256. As a text, they would take twice the space."""


class Base:
    """The base class of every table. Its instances are the rows of `models.database.rows.Db`: plain objects.

    On the class, a column's name gives the column.
    """

    metadata = sa.MetaData()
    __tablename__: str
    __table_args__: tuple[sa.schema.SchemaItem, ...] = ()
    """The table's indexes and constraints."""
    __table_options__: Mapping[str, Any] = {}
    __table__: sa.Table

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__tablename__" in vars(cls):
            columns = declared_columns(cls)
            cls.__table__ = sa.Table(
                cls.__tablename__, Base.metadata, *columns.values(), *cls.__table_args__, **cls.__table_options__
            )
            _tables[cls] = Table(cls, columns)
            for name, column in columns.items():
                setattr(cls, name, column)

    def __init__(self, **values: Any) -> None:
        """Make a row with these values, by column; any other column has its default. Raises TypeError for an unknown name."""
        table = table_of(type(self))
        if unknown := values.keys() - table.columns:
            raise TypeError(f"{type(self).__name__} has no column {', '.join(sorted(unknown))}")
        vars(self).update(table.defaults)
        vars(self).update(values)


class Table:
    """The SQL of one table. Columns have the names of their attributes."""

    def __init__(self, declared: type[Base], columns: dict[str, sa.Column[Any]]) -> None:
        self.declared = declared
        self.name = declared.__tablename__
        self.columns = columns
        self.primary_key = tuple(name for name, column in columns.items() if column.primary_key)
        self.defaults: dict[str, Any] = dict.fromkeys(self.columns) | {
            name: column.default.arg
            for name, column in self.columns.items()
            if isinstance(column.default, sa.ColumnDefault) and column.default.is_scalar
        }
        """The value of each column in a row that does not name it."""
        self._json = {name for name, column in self.columns.items() if isinstance(column.type, JSONB)}
        self._hex = {name for name, column in self.columns.items() if isinstance(column.type, Hex)}
        self._updates: dict[tuple[tuple[str, ...], tuple[str, ...]], str] = {}

    @cached_property
    def column_list(self) -> str:
        """The columns, in the order in which rows are loaded."""
        return ", ".join(f'"{column.key}"' for column in self.columns.values())

    @cached_property
    def select(self) -> str:
        """`SELECT ... FROM ...`, to be followed by clauses."""
        return f'SELECT {self.column_list} FROM "{self.name}"'  # noqa: S608 - names of our own

    @cached_property
    def insert(self) -> str:
        """An INSERT of one row."""
        marks = ", ".join(f"%({name})s" for name in self.columns)
        return f'INSERT INTO "{self.name}" ({self.column_list}) VALUES ({marks})'  # noqa: S608 - names of our own

    @cached_property
    def insert_many(self) -> str:
        """An INSERT of all rows of a JSON array of objects. It names its columns, so a later release can add one."""
        names = self.column_list
        rows = f'jsonb_populate_recordset(NULL::"{self.name}", CAST(%(rows)s AS jsonb))'
        return f'INSERT INTO "{self.name}" ({names}) SELECT {names} FROM {rows}'  # noqa: S608 - names of our own

    @cached_property
    def by_key(self) -> str:
        """The WHERE clause that selects one row by its primary key."""
        return "WHERE " + " AND ".join(f'"{self.columns[name].key}" = %({name})s' for name in self.primary_key)

    @cached_property
    def delete(self) -> str:
        """A DELETE of one row by its primary key."""
        return f'DELETE FROM "{self.name}" {self.by_key}'  # noqa: S608 - names of our own

    def update(self, changed_columns: tuple[str, ...], guarded: tuple[str, ...]) -> str:
        """Return an UPDATE that fails with the message `otherwise` unless the `guarded` columns have the values `was_...`."""
        if (changed_columns, guarded) not in self._updates:
            changes = ", ".join(f'"{self.columns[name].key}" = %({name})s' for name in changed_columns)
            where = " AND ".join(f'"{self.columns[name].key}" = %(was_{name})s' for name in guarded)
            update = f'UPDATE "{self.name}" SET {changes} WHERE {where} RETURNING 1'  # noqa: S608 - names of our own
            check = "SELECT assent_still(EXISTS (SELECT FROM moved), %(otherwise)s)"
            self._updates[changed_columns, guarded] = f"WITH moved AS ({update}) {check}"
        return self._updates[changed_columns, guarded]

    def key_of(self, values: dict[str, Any]) -> tuple[Any, ...]:
        """Return the primary key among these values."""
        return tuple(map(values.__getitem__, self.primary_key))

    def adapted(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values in the types that psycopg needs for their columns."""
        return {name: self._adapted(name, value) for name, value in values.items()}

    def _adapted(self, name: str, value: Any) -> Any:
        if value is not None and name in self._json:
            return Jsonb(value)
        return bytes.fromhex(value) if value is not None and name in self._hex else value

    def encoded(self, rows: Sequence[dict[str, Any]]) -> str:
        """Return the values of `insert_many`."""
        return encode([row | {name: "\\x" + row[name] for name in self._hex if row.get(name) is not None} for row in rows])

    def new(self, record: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """Return an object for a record in the order of `column_list`, and its values by name."""
        values = dict(zip(self.columns, record, strict=True))
        for name in self._hex:
            values[name] = None if values[name] is None else values[name].hex()
        row = self.declared.__new__(self.declared)
        vars(row).update(values)
        return row, values

    def of_json(self, values: Mapping[str, Any]) -> Any:
        """Return an object for a row as Postgres' `to_jsonb` writes it. It may be of a release with more or fewer columns."""
        return self.declared(**{name: self._of_json(name, values.get(column.key)) for name, column in self.columns.items()})

    def _of_json(self, name: str, value: Any) -> Any:
        kind = self.columns[name].type
        if isinstance(value, str) and isinstance(kind, sa.DateTime):
            return datetime.fromisoformat(value)
        if isinstance(value, str) and isinstance(kind, sa.LargeBinary):
            digits = value.removeprefix("\\x")
            return digits if name in self._hex else bytes.fromhex(digits)
        return self.defaults[name] if value is None else value


_tables: dict[type[Any], Table] = {}


def table_of(declared: type[Any]) -> Table:
    """Return the SQL of a declared table."""
    return _tables[declared]
