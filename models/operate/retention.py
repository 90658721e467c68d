"""Retention: rows that nobody needs any more are deleted. Each table is one line of `OLD`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from models.database import failure
from models.database.clock import STARTED
from models.database.transactions import transaction
from models.notices import link
from models.settings import settings

BATCH = 10_000
"""Most rows that one transaction deletes."""


@dataclass(frozen=True)
class Old:
    """The rows of a table whose time in `column` is more than `keep_time` ago. An index finds them by the column."""

    table: str
    column: str
    keep_time: Callable[[], timedelta] = timedelta
    key: str = "id"
    """The columns of the primary key."""


def _delivery_time() -> timedelta:
    return timedelta(seconds=settings().delivery_seconds)


OLD = (
    Old("stored_response", "expires_at"),
    Old("delivery", "ended_at", _delivery_time),
    Old("notification", "ended_at", _delivery_time),
    Old("link", "expires_at", lambda: link.KEPT),
    Old("failure", "not_before", lambda: timedelta(seconds=failure.FORGOTTEN_AFTER_SECONDS), "task, subject_id"),
)


def delete_old(old: Old) -> int:
    """Delete the next old rows of one table. Returns how many; if it is BATCH, there may be more."""
    statement = f"""
        WITH deleted AS (
            DELETE FROM {old.table} WHERE ({old.key}) IN (
                SELECT {old.key} FROM {old.table} WHERE {old.column} < {STARTED} - %(kept)s LIMIT %(limit)s
            ) RETURNING 1
        ) SELECT count(*) FROM deleted
    """  # noqa: S608 - names of our own
    with transaction(role="system") as db:
        return int(db.value(statement, kept=old.keep_time(), limit=BATCH))
