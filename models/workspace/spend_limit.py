"""Spend limits: the most that a workspace, an agent or a person may spend in a day, a week or a month, at list prices.

`models.flow.spend.limits` holds turns to them. The running sums of a limit's present period are in a row of `SpendSum`, which
`models.session.spending.standing` keeps.
"""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import sqlalchemy as sa

from models.audit import acts
from models.audit.principal import Principal
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.exchange import Statement
from models.database.rows import Db
from models.database.tables import Base
from models.errors import NotFound

PERIODS = ("daily", "weekly", "monthly")
_LOCK = "hashtextextended('spend_limit ' || current_setting('assent.workspace'), 0)"
NO_NEW_LIMIT = Statement(f"SELECT pg_advisory_xact_lock_shared({_LOCK})", {})
"""Nobody creates a limit of the workspace until the transaction ends. Then the limit's first sums include what it did."""


def starts(now: datetime) -> dict[str, date]:
    """Return the first day of each present period."""
    day = now.astimezone(UTC).date()
    return {"daily": day, "weekly": day - timedelta(days=day.weekday()), "monthly": day.replace(day=1)}


class SpendLimit(Base):
    """The limit of one scope in one period."""

    __tablename__ = "spend_limit"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    scope_type: Mapped[str]
    """`workspace`, `agent` or `user`."""
    scope_id: Mapped[str]
    """The workspace's, the agent's or the person's id."""
    period: Mapped[str]
    """`daily`, `weekly` or `monthly`. Days begin at midnight UTC, weeks on Monday, months on the 1st."""
    amount: Mapped[Decimal | None] = mapped_column(sa.Numeric)
    """In US dollars. None: no limit."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    created_by: Mapped[str]
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    since: Mapped[date] = mapped_column(server_default="0001-01-01")
    spent: Mapped[Decimal] = mapped_column(sa.Numeric, server_default="0")
    reserved: Mapped[Decimal] = mapped_column(sa.Numeric, server_default="0")
    """These three are for processes of the release before, while this one is deployed: the database's function
    `assent_carry_spend` carries what they change over to the limit's `SpendSum`."""

    __table_args__ = (sa.UniqueConstraint("workspace_id", "scope_type", "scope_id", "period"),)
    __table_options__ = {"postgresql_with": {"fillfactor": "70"}}  # noqa: RUF012 - as the base class declares it

    @classmethod
    def put(cls, db: Db, by: Principal, scope: tuple[str, str], period: str, amount: Decimal | None) -> "tuple[SpendLimit, bool]":
        """Set the limit of a scope (its type and id) in a period, in the place of the former one. Idempotent.

        Returns the limit, and whether it is new: then the caller inserts its sums.
        """
        db.rows(f"SELECT pg_advisory_xact_lock({_LOCK})")
        now, values = clock.now(db), {"scope_type": scope[0], "scope_id": scope[1], "period": period}
        new_id = ids.new("spl")
        db.write(_INSERT, id=new_id, workspace=by.workspace_id, by=str(by), now=now, **values)
        [row] = db.find(cls, _OF_SCOPE, **values)
        is_new = row.id == new_id
        if is_new or row.amount != amount:
            details = {"scope": scope[0], "scope_id": scope[1], "period": period, "to": _text(amount)}
            acts.record(db, by, "spend_limit.set", row.id, details if is_new else details | {"from": _text(row.amount)})
            row.amount, row.updated_at = amount, now
        return row, is_new

    def start(self, now: datetime) -> date:
        """Return the first day of the period in which `now` is."""
        return starts(now)[self.period]

    @classmethod
    def find(cls, db: Db, limit_id: str, *, lock: bool = False) -> "SpendLimit":
        """Return a limit. Raises NotFound."""
        row = db.get(cls, limit_id, lock=lock)
        if row is None:
            raise NotFound("spend limit", limit_id)
        return row

    @classmethod
    def remove(cls, db: Db, by: Principal, limit_id: str) -> None:
        """Delete a limit. Raises NotFound."""
        row = cls.find(db, limit_id, lock=True)
        db.delete(row)
        details = {"scope": row.scope_type, "scope_id": row.scope_id, "period": row.period, "from": _text(row.amount)}
        acts.record(db, by, "spend_limit.deleted", row.id, details)


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount.normalize():f}"


_INSERT = """
    INSERT INTO spend_limit (id, workspace_id, scope_type, scope_id, period, created_at, created_by, updated_at)
    VALUES (%(id)s, %(workspace)s, %(scope_type)s, %(scope_id)s, %(period)s, %(now)s, %(by)s, %(now)s)
    ON CONFLICT (workspace_id, scope_type, scope_id, period) DO NOTHING
"""
_OF_SCOPE = """
    WHERE scope_type = %(scope_type)s AND scope_id = %(scope_id)s AND period = %(period)s FOR NO KEY UPDATE
"""
