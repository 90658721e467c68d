"""Subjects at which a sweep failed. The sweep leaves such a subject alone for a while, so that it does not block the others."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.database.clock import STARTED
from models.database.tables import Base
from models.database.transactions import transaction

FIRST_SECONDS = 5
"""Pause after the first failure. Each further failure doubles it, up to LONGEST_SECONDS."""
LONGEST_SECONDS = 300
FORGOTTEN_AFTER_SECONDS = 3600
"""Age, from the end of the pause, at which a failure is deleted. A subject that still fails is tried again long before."""


class SweepFailure(Base):
    """The failures of one sweep at one subject. Deleted when the sweep succeeds at the subject, or after a while."""

    __tablename__ = "sweep_failure"

    sweep: Mapped[str] = mapped_column(primary_key=True)
    """The task's name without its prefix, such as `expire_approvals`."""
    subject_id: Mapped[str] = mapped_column(primary_key=True)
    """Id of the session or grant."""
    workspace_id: Mapped[str]
    failures: Mapped[int]
    not_before: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """End of the pause."""


def step_back(sweep: str, subject_id: str, workspace_id: str) -> None:
    """Have the sweep leave the subject alone for a while. Failures within one pause count as one."""
    values = {"sweep": sweep, "subject": subject_id, "workspace": workspace_id, "first": FIRST_SECONDS, "longest": LONGEST_SECONDS}
    with transaction(workspace_id) as db:
        db.write(_STEP_BACK, **values)


def recovered(sweep: str, subject_id: str, workspace_id: str) -> None:
    """Delete the subject's failures, because the sweep succeeded at it."""
    with transaction(workspace_id) as db:
        db.write("DELETE FROM sweep_failure WHERE sweep = %(sweep)s AND subject_id = %(subject)s", sweep=sweep, subject=subject_id)


def steps_back(sweep: str, subject: str) -> str:
    """Return an SQL condition: the sweep now leaves the subject alone whose id is in the column `subject`."""
    condition = f"sweep = '{sweep}' AND subject_id = {subject} AND not_before > {STARTED}"
    return f"EXISTS (SELECT FROM sweep_failure WHERE {condition})"


def to_retry(sweep: str, limit: int) -> list[tuple[str, str]]:
    """Return subjects at which the sweep failed and that it may try again, as `(subject id, workspace id)`."""
    due = f"""
        SELECT subject_id, workspace_id FROM sweep_failure WHERE sweep = %(sweep)s AND not_before <= {STARTED}
        ORDER BY not_before LIMIT %(limit)s
    """  # noqa: S608 - names of our own
    with transaction(role="system") as db:
        return [(subject_id, workspace_id) for subject_id, workspace_id in db.rows(due, sweep=sweep, limit=limit)]


def forget_old() -> None:
    """Delete failures whose pause ended FORGOTTEN_AFTER_SECONDS ago."""
    with transaction(role="system") as db:
        db.write(f"DELETE FROM sweep_failure WHERE not_before < {STARTED} - interval '{FORGOTTEN_AFTER_SECONDS} seconds'")  # noqa: S608


_STEP_BACK = """
    INSERT INTO sweep_failure (sweep, subject_id, workspace_id, failures, not_before)
    VALUES (%(sweep)s, %(subject)s, %(workspace)s, 1, assent_now() + make_interval(secs => %(first)s))
    ON CONFLICT (sweep, subject_id) DO UPDATE SET
        failures = sweep_failure.failures + 1,
        not_before = assent_now()
            + make_interval(secs => least(%(longest)s, %(first)s * power(2, least(sweep_failure.failures, 20))))
    WHERE sweep_failure.not_before <= assent_now()
"""
