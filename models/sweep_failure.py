"""What a sweep could not deal with: the sweep leaves it alone for a while, so that it does not keep the sweep from the rest."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import InstrumentedAttribute, Mapped, mapped_column

from models.clock import STARTED, ahead
from models.db import Base, transaction

FIRST_SECONDS = 5
"""How long a sweep leaves a subject alone after the first failure; doubles with each further one, up to LONGEST_SECONDS."""
LONGEST_SECONDS = 300
FORGOTTEN_AFTER_SECONDS = 3600
"""After the end of the pause. A subject that keeps failing is tried again long before."""


class SweepFailure(Base):
    """One sweep failed at one subject. The row ends with the sweep's success, or is forgotten."""

    __tablename__ = "sweep_failure"

    sweep: Mapped[str] = mapped_column(primary_key=True)
    """The task's name without its prefix, such as `expire_approvals`."""
    subject_id: Mapped[str] = mapped_column(primary_key=True)
    """The session or grant that the sweep works on in one transaction."""
    workspace_id: Mapped[str]
    failures: Mapped[int]
    not_before: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """When the sweep tries again."""


def step_back(sweep: str, subject_id: str, workspace_id: str) -> None:
    """Have the sweep leave the subject alone for a while. Several beats that fail at the same time count as one failure."""
    values = {"sweep": sweep, "subject": subject_id, "workspace": workspace_id, "first": FIRST_SECONDS, "longest": LONGEST_SECONDS}
    with transaction(workspace_id) as db:
        db.execute(_STEP_BACK, values)


def recovered(sweep: str, subject_id: str, workspace_id: str) -> None:
    """Forget the subject's failures: the sweep has dealt with it."""
    mine = (SweepFailure.sweep == sweep, SweepFailure.subject_id == subject_id)
    with transaction(workspace_id) as db:
        db.execute(sa.delete(SweepFailure).where(*mine), execution_options={"synchronize_session": False})


def steps_back(sweep: str, subject_id: "sa.ColumnElement[str] | InstrumentedAttribute[str]") -> "sa.ColumnElement[bool]":
    """True for a subject that the sweep leaves alone now."""
    mine = (SweepFailure.sweep == sweep, SweepFailure.subject_id == subject_id)
    return sa.exists().where(*mine, SweepFailure.not_before > STARTED)


def to_retry(sweep: str, limit: int) -> list[tuple[str, str]]:
    """Subjects at which the sweep failed and that it may try again, with their workspaces."""
    due = sa.select(SweepFailure.subject_id, SweepFailure.workspace_id).where(SweepFailure.sweep == sweep)
    due = due.where(SweepFailure.not_before <= STARTED).order_by(SweepFailure.not_before).limit(limit)
    with transaction(role="system") as db:
        return [(subject_id, workspace_id) for subject_id, workspace_id in db.execute(due)]


def forget_old() -> None:
    """Delete failures of subjects that are no longer due."""
    old = SweepFailure.not_before < ahead(-FORGOTTEN_AFTER_SECONDS)
    with transaction(role="system") as db:
        db.execute(sa.delete(SweepFailure).where(old), execution_options={"synchronize_session": False})


_STEP_BACK = sa.text("""
    INSERT INTO sweep_failure (sweep, subject_id, workspace_id, failures, not_before)
    VALUES (:sweep, :subject, :workspace, 1, assent_now() + make_interval(secs => :first))
    ON CONFLICT (sweep, subject_id) DO UPDATE SET
        failures = sweep_failure.failures + 1,
        not_before = assent_now() + make_interval(secs => least(:longest, :first * power(2, least(sweep_failure.failures, 20))))
    WHERE sweep_failure.not_before <= assent_now()
""")
