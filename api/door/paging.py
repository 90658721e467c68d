"""Pages of lists, by key and not by offset: each begins after the last row of the page before, even if rows come or go."""

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from api.door.requests import EARLIEST, LATEST, IdPaged, Paged
from api.door.responses import Page, ResponseModel
from models.database.exchange import Statement
from models.database.query import Query
from models.database.rows import Db
from models.database.tables import table_of
from models.errors import Invalid

R = TypeVar("R")
A = TypeVar("A", bound=ResponseModel)
_OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
"""SQL operators by their names in queries."""
Key = tuple[Any, ...]

_NOT_OURS = "is not a cursor of this list: pass `next_page` or `prev_page` of a response unchanged, with the same order."

MOST_COUNTED = 100


class Count(int):
    """A number of rows, counted up to MOST_COUNTED. As text, that number is `99+`."""

    def __str__(self) -> str:
        return f"{MOST_COUNTED - 1}+" if self >= MOST_COUNTED else repr(int(self))


@dataclass(frozen=True)
class Selection(Generic[R]):
    """A selection of a table's rows: those that meet all conditions, in SQL with `%(name)s` for values."""

    table: type[R]
    conditions: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    parts: tuple[str, Sequence[str]] | None = None
    """A column and the values that it may have, each of which Postgres looks up by itself."""
    are_constant: bool = False
    """True if these values are constants of the code. They are then a part of the statement, so that its plan is made for them."""

    def where(self, condition: str, **values: Any) -> "Selection[R]":
        """Return the selection with one more condition."""
        return replace(self, conditions=(*self.conditions, condition), values=self.values | values)

    def within(self, column: str, values: Sequence[str]) -> "Selection[R]":
        """Return the selection limited to rows with one of these values, for an index that begins with the column.

        One condition for all values would fit the index, but not the order of a list.
        """
        return replace(self, parts=(column, values))

    def among(self, column: str, constants: Sequence[str]) -> "Selection[R]":
        """Return the selection limited to rows with one of these constants, as `within` does.

        For a column with few values: Postgres would take any value for a common one, and would not look up a rare one by index.
        """
        return replace(self, parts=(column, constants), are_constant=True)

    def equal(self, **values: Any) -> "Selection[R]":
        """Return the selection limited to rows with these values. A value of None does not limit its column."""
        given_values = {column: value for column, value in values.items() if value is not None}
        return replace(
            self,
            conditions=(*self.conditions, *(f"{column} = %({column})s" for column in given_values)),
            values=self.values | given_values,
        )

    def between(self, column: str, bounds: Iterable[tuple[str, datetime]]) -> "Selection[R]":
        """Return the selection limited to rows whose `column` is within the bounds, such as `("gt", ...)`."""
        selection = self
        for op, at in bounds:
            selection = selection.where(f"{column} {_OPERATORS[op]} %({column}_{op})s", **{f"{column}_{op}": at})
        return selection

    def among_newest(self, db: Db, most: int) -> "Selection[R]":
        """Return the selection limited to the newest rows of the whole table, `most` at most, by `created_at`.

        Reads the newest row beyond them in a statement of its own. As a part of another one, Postgres would read the whole table.
        """
        table = table_of(self.table).name
        edge = db.value(f'SELECT created_at FROM "{table}" ORDER BY created_at DESC OFFSET %(most)s LIMIT 1', most=most)  # noqa: S608
        return self if edge is None else self.where("created_at > %(edge)s", edge=edge)

    def count(self, db: Db) -> "Count":
        """Return the number of rows, up to MOST_COUNTED."""
        rows = self._statement("1 AS counted", "LIMIT %(most)s", most=MOST_COUNTED)
        return Count(db.value(f"SELECT count(*) FROM ({rows.sql}) AS counted", **rows.values))  # noqa: S608 - names of our own

    def exist(self, db: Db) -> bool:
        """True if there is such a row."""
        rows = self._statement("1", "LIMIT 1")
        return bool(db.rows(rows.sql, **rows.values))

    def values_of(self, db: Db, columns: Sequence[str], end: str, **values: Any) -> list[list[Any]]:
        """Return the different values of each column, in their order and without null, of the rows that `end` leaves."""
        rows = self._statement(", ".join(columns), end, **values)
        lists = ", ".join(f"array_agg(DISTINCT {column}) FILTER (WHERE {column} IS NOT NULL)" for column in columns)
        [row] = db.rows(f"SELECT {lists} FROM ({rows.sql}) AS looked_at", **rows.values)  # noqa: S608 - names of our own
        return [values or [] for values in row]

    def counts_of(self, db: Db, columns: Sequence[str], end: str, **values: Any) -> dict[Key, int]:
        """Return how many of the rows that `end` leaves have each set of values in the columns, by these values."""
        rows, names = self._statement(", ".join(columns), end, **values), ", ".join(columns)
        found_rows = db.rows(f"SELECT {names}, count(*) FROM ({rows.sql}) AS looked_at GROUP BY {names}", **rows.values)  # noqa: S608
        return {tuple(key): number for *key, number in found_rows}

    def select(self, db: Db, end: str, **values: Any) -> list[R]:
        """Return the rows. `end` is the SQL after the conditions."""
        [rows] = db.read(Query(self.table, self._statement(table_of(self.table).column_list, end, **values)))
        return rows

    def _statement(self, columns: str, end: str, **values: Any) -> Statement:
        table = table_of(self.table).name
        where = f"WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        if self.parts is None:
            return Statement(f'SELECT {columns} FROM "{table}" {where} {end}', self.values | values)  # noqa: S608
        column, parts = self.parts
        if self.are_constant:
            each = [f"(SELECT * FROM \"{table}\" {where or 'WHERE true'} AND {column} = '{part}' {end})" for part in parts]  # noqa: S608
            rows = " UNION ALL ".join(each)
            return Statement(f'SELECT {columns} FROM ({rows}) AS "{table}" {end}', self.values | values)  # noqa: S608 - names of our own
        part = f'SELECT * FROM "{table}" {where or "WHERE true"} AND {column} = part.part {end}'  # noqa: S608 - names of our own
        whole = f'SELECT {columns} FROM unnest(%(parts)s::text[]) AS part (part) CROSS JOIN LATERAL ({part}) AS "{table}" {end}'  # noqa: S608
        return Statement(whole, self.values | values | {"parts": list(parts)})


@dataclass(frozen=True)
class Order(Generic[R]):
    """A list's order: by unique `columns`."""

    name: str
    """Part of the cursor, so that a cursor fits only one list and one order."""
    columns: tuple[Any, ...]
    descending: bool = True

    def reversed(self) -> "Order[R]":
        """Return the opposite order."""
        return replace(self, descending=not self.descending)

    def key(self, row: R) -> Key:
        """Return the columns' values in a row."""
        return tuple(getattr(row, column.key) for column in self.columns)

    def cursor(self, row: R) -> str:
        """Return the cursor of the page that begins after a row."""
        return _encode(self, self.key(row))


def page(db: Db, selection: Selection[R], order: Order[R], limit: int, cursor: str | None) -> tuple[Sequence[R], str | None]:
    """Return at most `limit` rows after `cursor`, and the cursor of the next page, or None."""
    names = [column.key for column in order.columns]
    if cursor is not None:
        after = {f"after_{name}": value for name, value in zip(names, place(order, cursor), strict=True)}
        marks = ", ".join(f"%({mark})s" for mark in after)
        selection = selection.where(f"({', '.join(names)}) {'<' if order.descending else '>'} ({marks})", **after)
    sorts = ", ".join(f"{name} {'DESC' if order.descending else 'ASC'}" for name in names)
    rows = selection.select(db, f"ORDER BY {sorts} LIMIT %(limit)s", limit=limit + 1)
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], _encode(order, order.key(rows[limit - 1]))


def listed(db: Db, selection: Selection[R], order: Order[R], query: Paged, response: Callable[[R], A]) -> Page[A]:
    """Return the page of a list for which the query asks, each row as `response`."""
    rows, after = page(db, selection, order, query.limit, query.page)
    return Page(data=[response(row) for row in rows], next_page=after)


def both_ways(
    db: Db, selection: Selection[R], order: Order[R], limit: int, cursor: str | None
) -> tuple[Sequence[R], str | None, str | None]:
    """Return rows as `page` does, the cursor of the next page, and the cursor of the previous page. A cursor may be None."""
    back = replace(order.reversed(), name=f"{order.name} back")
    if cursor is None or not _is_of(back, cursor):
        rows, after = page(db, selection, order, limit, cursor)
        return rows, after, _encode(back, back.key(rows[0])) if rows and cursor else None
    rows, before = page(db, selection, back, limit, cursor)
    rows = rows[::-1]
    return rows, _encode(order, order.key(rows[-1])) if rows else None, before


def id_page(db: Db, selection: Selection[R], query: IdPaged, column: str = "id") -> tuple[Sequence[R], bool]:
    """Return a page of rows by a unique column, newest first, and whether there are more in this direction. Raises Invalid."""
    if query.after_id and query.before_id:
        raise Invalid("before_id", "cannot be sent together with after_id; send one of them.")
    if query.after_id:
        selection = selection.where(f"{column} < %(after)s", after=query.after_id)
    if query.before_id:
        selection = selection.where(f"{column} > %(before)s", before=query.before_id)
    order = "ASC" if query.before_id else "DESC"
    rows = selection.select(db, f"ORDER BY {column} {order} LIMIT %(limit)s", limit=query.limit + 1)
    has_more, rows = len(rows) > query.limit, rows[: query.limit]
    return (rows[::-1] if query.before_id else rows), has_more


def _is_of(order: Order[R], cursor: str) -> bool:
    try:
        place(order, cursor)
    except Invalid:
        return False
    return True


def _encode(order: Order[R], key: Key) -> str:
    return cursor_of([order.name, order.descending, *(v.isoformat() if isinstance(v, datetime) else v for v in key)])


def cursor_of(parts: Sequence[Any]) -> str:
    """Return a cursor that holds these JSON values."""
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def parts_of(cursor: str) -> list[Any]:
    """Return what a cursor holds. Raises ValueError, TypeError or RecursionError for a text that is not a cursor."""
    parts: list[Any] = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return parts


def place(order: Order[R], cursor: str) -> Key:
    """Return a cursor's position: `order.key` of the last row of the previous page. Raises Invalid."""
    try:
        name, descending, *key = parts_of(cursor)
        values = tuple(value_of(column.type.python_type, v) for column, v in zip(order.columns, key, strict=True))
    except (ValueError, TypeError, RecursionError):
        raise Invalid("page", _NOT_OURS) from None
    if (name, descending) != (order.name, order.descending):
        raise Invalid("page", _NOT_OURS)
    return values


def value_of(kind: Any, value: Any) -> Any:
    """Return a cursor's JSON value as this type. Raises ValueError or TypeError for a value that no row can have."""
    if kind is datetime:
        at = datetime.fromisoformat(value)
        if at.tzinfo is None or not EARLIEST <= at <= LATEST:
            raise ValueError(value)
        return at.astimezone(UTC)  # Postgres reads no offset with a fraction of a second
    if type(value) is not kind or (kind is str and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value))):
        raise ValueError(value)
    if kind is int and abs(value) >= 2**63:
        raise ValueError(value)
    return value
