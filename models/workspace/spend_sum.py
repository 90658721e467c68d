"""The running sums of each spend limit: one row, which every request that counts against the limit changes.

A snapshot that is held for long (a backup, a forgotten transaction) keeps every version of such a row, and whoever looks a row up
by its id passes all of them. So each change also raises the row's `number`, which is the last part of its key: the newest version
is the last entry of the index, where a reader begins.

    SELECT ... FROM spend_sum WHERE limit_id = ... ORDER BY number DESC LIMIT 1

Who changes the row locks the limit's row first (`FOR NO KEY UPDATE`, which makes no version), in a statement of its own, since a
statement sees only what was committed before it began.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import sqlalchemy as sa

from models.database.columns import Mapped, mapped_column
from models.database.exchange import Statement
from models.database.query import Query
from models.database.rows import Db
from models.database.tables import Base, table_of

BY_INDEX = "set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)"
"""SQL that makes the rest of the transaction read by index. Postgres expects one row per limit, and would read all versions."""


class SpendSum(Base):
    """The cost of a limit's present period, and what requests under way may add."""

    __tablename__ = "spend_sum"

    limit_id: Mapped[str] = mapped_column(sa.ForeignKey("spend_limit.id", ondelete="CASCADE"), primary_key=True)
    workspace_id: Mapped[str]
    number: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    """Raised by each change."""
    since: Mapped[date]
    """The first day of the period whose cost is `spent`: the newest one in which a request ended."""
    spent: Mapped[Decimal] = mapped_column(sa.Numeric)
    """The cost of that period, in US dollars: the sum of its days (`daily_usage.DAYS`)."""
    reserved: Mapped[Decimal] = mapped_column(sa.Numeric)
    """The most that the requests under way may cost, in US dollars: the sum of their quotes."""

    def spent_from(self, start: date) -> Decimal:
        """Return the cost of the period that begins at `start`."""
        return self.spent if self.since >= start else Decimal(0)


def reserve(db: Db, rows: Sequence[SpendSum], dollars: Decimal) -> None:
    """Add the highest cost of a request that begins to these sums, whose limits are locked."""
    db.write(_RESERVE, dollars=dollars, limits=[row.limit_id for row in rows], numbers=[row.number for row in rows])


def of_limits(limit_ids: Sequence[str]) -> Query[SpendSum]:
    """Return the query for the sums of these limits."""
    return Query(SpendSum, Statement(_OF_LIMITS, {"limits": list(limit_ids)}))


def newest(columns: str) -> str:
    """Return SQL, to be joined with `spend_limit`: its sums as `newest`."""
    return f"""CROSS JOIN LATERAL (
        SELECT {columns} FROM spend_sum WHERE limit_id = spend_limit.id ORDER BY number DESC LIMIT 1
    ) newest"""  # noqa: S608 - names of our own


_OF_LIMITS = f"""
    SELECT newest.* FROM unnest(%(limits)s::text[]) spend_limit (id) {newest(table_of(SpendSum).column_list)}
"""  # noqa: S608 - names of our own
_RESERVE = """
    UPDATE spend_sum SET number = number + 1, reserved = reserved + %(dollars)s
    WHERE limit_id = ANY(%(limits)s) AND number = ANY(%(numbers)s)
"""
"""Each limit has one row. So these two arrays name the rows, and always the beginning of a search by the index."""
