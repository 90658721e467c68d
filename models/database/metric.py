"""Sums for operators over all workspaces, which never fall: counters, histograms, and times of the last success.

The sweep `sweep.add_up_metrics` adds up the rows that exist anyway, after their commit (`models.operate.metrics.adding_up`). So no
transaction of a session writes here.
"""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction


class Metric(Base):
    """One sample of a metric: its value by name and labels. It belongs to the operator; `assent_app` cannot read it."""

    __tablename__ = "metric"

    name: Mapped[str] = mapped_column(primary_key=True)
    """The metric's name in Prometheus. A histogram has the samples `_sum`, and `_bucket` with the label `le`, each of its own."""
    labels: Mapped[dict[str, str]] = mapped_column(JSONB, primary_key=True)
    value: Mapped[float] = mapped_column(sa.Double)
    """The sum since the installation, or a time in seconds since 1970."""


def sweep_succeeded(sweep: str) -> None:
    """Record that a sweep succeeded now. `sweep` is the task's name."""
    with transaction() as db:
        db.rows("SELECT assent_sweep_succeeded(%(sweep)s)", sweep=sweep)


def claim_failed(db: Db, task: str) -> None:
    """Count a task's failure to claim a row, with the transaction's commit. Sweeps and other names are not counted."""
    db.write("SELECT assent_claim_failed(%(task)s)", task=task)
