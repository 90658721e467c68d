"""The sums of each day, which a sweep makes from the attempts (`TurnUsage`), behind their commits.

So no reply waits for a row that all replies of the day change, nor passes its versions, which a snapshot that is held for long (a
backup, a forgotten transaction) keeps. Readers add the attempts that are not summed yet: `DAYS`.
"""

from datetime import date
from decimal import Decimal

import sqlalchemy as sa

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.pure.pricing.usage import COUNTS

BATCH = 5000
"""Most attempts that one transaction sums."""


class DailyUsage(Base):
    """The sums of one day (UTC), agent, person, provider and model."""

    __tablename__ = "daily_usage"

    workspace_id: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[date] = mapped_column(primary_key=True)
    agent_id: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[str] = mapped_column(primary_key=True)
    """Empty if no person is known."""
    provider: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    requests: Mapped[int] = mapped_column(sa.BigInteger)
    estimated_requests: Mapped[int] = mapped_column(sa.BigInteger)
    unpriced_requests: Mapped[int] = mapped_column(sa.BigInteger)
    input_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    output_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    cache_read_input_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    cache_creation_input_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    cache_creation_1h_input_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    web_search_requests: Mapped[int] = mapped_column(sa.BigInteger)
    web_fetch_requests: Mapped[int] = mapped_column(sa.BigInteger)
    cost: Mapped[Decimal] = mapped_column(sa.Numeric)
    """Cost of the requests with a price, in US dollars."""
    cache_savings: Mapped[Decimal] = mapped_column(sa.Numeric)

    __table_args__ = (sa.Index("daily_usage_of_person", "workspace_id", "person_id", "day"),)
    __table_options__ = {"postgresql_with": {"fillfactor": "70"}}  # noqa: RUF012 - as the base class declares it


def add_up(db: Db) -> int:
    """Add the next attempts of the workspace to the sums of their days. Returns how many; if it is BATCH, there may be more.

    The caller sees to it that nobody else does so meanwhile."""
    return int(db.value(_ADD_UP, limit=BATCH))


def take_back(db: Db, turn_id: str, attempt: int) -> None:
    """Remove an attempt, which was summed, from the sums of its day, before its row changes."""
    db.write(_TAKE_BACK, turn=turn_id, attempt=attempt)


_KEY = ("workspace_id", "day", "agent_id", "person_id", "provider", "model")
SUMS = {
    "requests": "1::bigint",
    "estimated_requests": "estimated::int::bigint",
    "unpriced_requests": "(cost IS NULL)::int::bigint",
    **{name: name for name in COUNTS},
    "cost": "coalesce(cost, 0)",
    "cache_savings": "coalesce(cache_savings, 0)",
}
"""What each attempt adds to the sums, in SQL."""
_COLUMNS = ", ".join((*_KEY, *SUMS))
_OF_ATTEMPTS = f"""
    workspace_id, (at AT TIME ZONE 'UTC')::date AS day, agent_id, coalesce(person_id, '') AS person_id, provider, model,
    {", ".join(f"{value} AS {name}" for name, value in SUMS.items())}
"""
DAYS = f"""(
    SELECT {_COLUMNS} FROM daily_usage UNION ALL SELECT {_OF_ATTEMPTS} FROM turn_usage WHERE NOT summed
) days"""  # noqa: S608 - names of our own
"""The sums of each day in parts, in SQL: who reads them adds them up."""
_IN_ONE_ORDER = ", ".join(f'{name} COLLATE "C"' if name != "day" else name for name in _KEY)
"""The order in which all transactions change the sums, so that none waits for another that waits for it."""


def _add(attempts: str, sign: str) -> str:
    """Return SQL that adds the rows `attempts` to the sums, or with the sign `-` removes them."""
    return f"""
        INSERT INTO daily_usage ({_COLUMNS})
        SELECT {", ".join(_KEY)}, {", ".join(f"{sign}sum({name})" for name in SUMS)}
        FROM (SELECT {_OF_ATTEMPTS} FROM {attempts}) part GROUP BY {", ".join(_KEY)} ORDER BY {_IN_ONE_ORDER}
        ON CONFLICT ({", ".join(_KEY)}) DO UPDATE
        SET {", ".join(f"{name} = daily_usage.{name} + excluded.{name}" for name in SUMS)}
    """  # noqa: S608 - names of our own


_ADD_UP = f"""
    WITH fresh AS (
        UPDATE turn_usage SET summed = true WHERE (turn_id, attempt, request) IN (
            SELECT turn_id, attempt, request FROM turn_usage
            WHERE workspace_id = current_setting('assent.workspace') AND NOT summed LIMIT %(limit)s
        ) RETURNING *
    ), added AS ({_add("fresh", "")})
    SELECT count(*) FROM fresh
"""  # noqa: S608 - names of our own
_TAKE_BACK = _add("turn_usage WHERE turn_id = %(turn)s AND attempt = %(attempt)s", "-")
