"""The usage of each attempt at a turn.

It outlives its session, because a deleted conversation has still been paid for. The transaction that ends an attempt inserts its
rows, so a crash neither loses nor doubles them. Its last statements change the sums of spend limits; the sums of the day follow
(`models.database.daily_usage`).
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database import daily_usage
from models.database.columns import Mapped, mapped_column
from models.database.tables import Base
from models.pure.pricing.charges import Charge
from models.pure.pricing.prices import Price
from models.pure.pricing.usage import COUNTS, Usage
from models.session.locked import Locked
from models.session.spending import sums as spend_sums
from models.session.turn.row import Turn


class TurnUsage(Base):
    """One request of an attempt at a turn that reached the model, or may have."""

    __tablename__ = "turn_usage"

    session_id: Mapped[str]
    turn_id: Mapped[str] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    request: Mapped[int] = mapped_column(primary_key=True)
    """Number of the request in its attempt, from 1. An attempt that falls back to other models sends several."""
    workspace_id: Mapped[str]
    thread_id: Mapped[str]
    agent_id: Mapped[str]
    person_id: Mapped[str | None]
    """The person who pays: `Session.spender`."""
    provider: Mapped[str]
    model: Mapped[str]
    """The name of the model that replied."""
    at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """End of the request."""
    input_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    output_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    cache_read_input_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    cache_creation_input_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    cache_creation_1h_input_tokens: Mapped[int] = mapped_column(sa.BigInteger)
    web_search_requests: Mapped[int] = mapped_column(sa.BigInteger)
    web_fetch_requests: Mapped[int] = mapped_column(sa.BigInteger)
    estimated: Mapped[bool]
    """True if the provider did not report the usage."""
    price: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The price of this request, which never changes: `Price.stored`. Null: unknown."""
    cost: Mapped[Decimal | None] = mapped_column(sa.Numeric)
    """In US dollars. Null: unknown."""
    cache_savings: Mapped[Decimal | None] = mapped_column(sa.Numeric)
    summed: Mapped[bool] = mapped_column(default=False, server_default=sa.true())
    """True if the sums of the day include it. Releases before 0036 do not name the column: they sum by themselves."""

    __table_args__ = (
        sa.Index("turn_usage_to_sum", "workspace_id", postgresql_where=sa.text("NOT summed")),
        sa.Index("turn_usage_of_workspace", "workspace_id", "at"),
        sa.Index("turn_usage_at", "at", postgresql_using="brin", postgresql_with={"pages_per_range": 16, "autosummarize": True}),
    )

    @classmethod
    def record(cls, locked: Locked, turn: Turn, charges: Sequence[Charge]) -> None:
        """Count the charges of the turn's present attempt. Called once per attempt, in the transaction that ends it."""
        for request, charge in enumerate(charges, 1):
            cls._insert(locked, turn, request, charge, locked.session.spender)

    @classmethod
    def correct(cls, locked: Locked, turn: Turn, charges: Sequence[Charge]) -> None:
        """Replace the estimate for an attempt that was ended from outside by its worker's charges. No-op without an estimate."""
        rows = locked.db.find(cls, _OF_ATTEMPT, turn=turn.id, attempt=turn.attempt)
        if not charges or len(rows) != 1 or not rows[0].estimated:
            return
        [row] = rows
        if row.summed:
            daily_usage.take_back(locked.db, turn.id, turn.attempt)
            row.summed = False
        row.count(locked, row.charge, -1)
        row.take(charges[0])
        row.count(locked, charges[0])
        for request, charge in enumerate(charges[1:], 2):
            cls._insert(locked, turn, request, charge, row.person_id)

    @classmethod
    def _insert(cls, locked: Locked, turn: Turn, request: int, charge: Charge, person_id: str | None) -> None:
        thread = locked.thread
        row = cls(
            turn_id=turn.id, attempt=turn.attempt, request=request, workspace_id=turn.workspace_id, session_id=turn.session_id
        )
        row.thread_id, row.agent_id, row.person_id, row.at = thread.id, thread.agent_id, person_id, locked.now
        row.take(charge)
        locked.db.insert(row)
        row.count(locked, charge)

    def count(self, locked: Locked, charge: Charge, times: int = 1) -> None:
        """Add a charge to the sums of the thread, the session and the spend limits, or remove it if `times` is -1."""
        locked.thread.count(charge, times)
        locked.session.count(charge, times)
        spend_sums.spend(locked.db, self.agent_id, self.person_id, self.at, times * (charge.cost or Decimal(0)))

    @property
    def charge(self) -> Charge:
        """The request's charge."""
        usage = Usage(**{name: getattr(self, name) for name in COUNTS})
        return Charge(self.provider, self.model, Price.of(self.price) if self.price else None, usage, self.estimated)

    def take(self, charge: Charge) -> None:
        """Set the request's charge."""
        for name, count in charge.usage.counts.items():
            setattr(self, name, count)
        self.provider, self.model, self.estimated = charge.provider, charge.model, charge.estimated
        self.price = charge.price.as_json if charge.price else None
        self.cost = charge.cost
        self.cache_savings = None if charge.cost is None else charge.savings


_OF_ATTEMPT = "WHERE turn_id = %(turn)s AND attempt = %(attempt)s FOR NO KEY UPDATE"
