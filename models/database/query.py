"""A read of rows, before it is sent. `Db.read` sends several queries in one round trip."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from models.database.exchange import Statement
from models.database.tables import table_of

T = TypeVar("T")


@dataclass(frozen=True)
class Query(Generic[T]):
    """A read of rows of `table`."""

    table: type[T]
    statement: Statement


def select(table: type[T], clauses: str = "", **values: Any) -> Query[T]:
    """Return a query for rows of a table. `clauses` is the SQL after FROM: `WHERE`, `ORDER BY`, `FOR UPDATE` and so on."""
    return Query(table, Statement(f"{table_of(table).select} {clauses}", values))


def select_one(table: type[T], *key: Any, clauses: str = "") -> Query[T]:
    """Return a query for the row with this primary key. `clauses` is SQL after its WHERE: `FOR UPDATE` and so on."""
    sql = table_of(table)
    return select(table, f"{sql.by_key} {clauses}", **dict(zip(sql.primary_key, key, strict=True)))
