"""Sums of approvals by the day on which people were asked: what insights read, whatever the number of approvals.

The sweep `sweep.add_up_metrics` adds each closed approval once, after its commit (`models.operate.insights.adding`). So no decision
waits for a sum, and sums stay when sessions are deleted. A row holds names and numbers, no content.
"""

from datetime import date

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from models.database.columns import Mapped, mapped_column
from models.database.tables import Base


class DailyAsks(Base):
    """The approvals of one day (UTC) that share a name and an outcome."""

    __tablename__ = "daily_asks"

    workspace_id: Mapped[str] = mapped_column(primary_key=True)
    about: Mapped[str] = mapped_column(primary_key=True)
    """What `name` is: one of `models.operate.insights.adding.ABOUT`, or for the sums of one agent `of_agent` of it."""
    day: Mapped[date] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    """The hour of the question (UTC, `00` to `23`), the tool, the agent's id, the way of the decision, or the id of who decided."""
    outcome: Mapped[str] = mapped_column(primary_key=True)
    """`allowed`, `denied`, `answered`, `expired` or `cancelled`."""
    asks: Mapped[list[int]] = mapped_column(ARRAY(sa.Integer))
    """The number of approvals by their time to the decision, in the order of `models.operate.insights.waits.CLASSES`. An array and
    not a row for each class: so the rows of a day have a limit that a busy day soon reaches."""
