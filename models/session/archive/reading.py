"""Rows that are in parts. Where no content may be read, in a transaction, `transact` reads it first and then starts anew."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

from models.database.rows import Db
from models.database.tables import table_of
from models.errors import Unreadable
from models.pure import ahead
from models.session.archive import contents
from models.session.archive.contents import Contents, Fault
from models.session.archive.part import ArchivePart

T = TypeVar("T")


def content_of(part: ArchivePart) -> Contents | Fault:
    """Return the content of a part, or what is wrong with it."""
    return ahead.outside(f"part {part.id} of the archive", lambda: contents.read(part))


def rows_at(db: Db, table: type[T], session_id: str, time: datetime | None) -> list[T]:
    """Return the rows of a table in the parts that hold what ended at this time. Raises Unreadable."""
    sql, rows = table_of(table), []
    for part in ArchivePart.at(db, session_id, time) if time else ():
        content = content_of(part)
        if isinstance(content, Fault):
            raise Unreadable(f"This cannot be read: {content.sentence}")
        rows += [sql.of_json(row) for row in content.of(sql.name)]
    return rows


def readable_rows_at(db: Db, table: type[T], session_id: str, time: datetime | None) -> list[T]:
    """Return the rows as `rows_at` does, and none if the part cannot be read."""
    with suppress(Unreadable):
        return rows_at(db, table, session_id, time)
    return []


def row_of(db: Db, table: type[T], key: str, session_id: str, time: datetime | None) -> T | None:
    """Return the row with this primary key: the database's, else the archive's of that time, else None. Raises Unreadable."""
    row = db.get(table, key)
    if row is None:
        [name] = table_of(table).primary_key
        row = next((each for each in rows_at(db, table, session_id, time) if getattr(each, name) == key), None)
    return row


def contents_after(
    db: Db, session_id: str, seq: int, *, descending: bool = False
) -> Iterator[tuple[ArchivePart, Contents | Fault]]:
    """Yield the parts of a session with events after `seq`, in order or the last first, each with its content or its fault."""
    parts: Any = ArchivePart.after_event(db, session_id, seq)
    for part in reversed(parts) if descending else parts:
        yield part, content_of(part)
