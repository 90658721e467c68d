"""Subjects at which a task failed. The task leaves such a subject alone for a while, so that it does not block the others."""

from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from models.database import metric
from models.database.clock import STARTED
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction

FIRST_SECONDS = 5
"""Pause after the first failure. Each further failure doubles it, up to LONGEST_SECONDS."""
LONGEST_SECONDS = 300
CONNECTED_SECONDS = 600
"""A failure that comes so long after the end of the pause before it is counted from the beginning."""
FORGOTTEN_AFTER_SECONDS = 3600
"""Age, from the end of the pause, at which a failure is deleted. A subject that still fails is tried again long before."""
TOLD_SECONDS = 900
TOLD = f"failures > 0 AND not_before > {STARTED} - interval '{TOLD_SECONDS} seconds'"
"""SQL that is true for failures that operators are told of. A subject that still fails is tried again within TOLD_SECONDS: so an
older failure has healed, or its row was ended."""


class Failure(Base):
    """The failures of one task at one subject. Deleted after a while, or by `recovered`."""

    __tablename__ = "failure"

    task: Mapped[str] = mapped_column(primary_key=True)
    """The task's name, such as `turn.run`; a sweep's without its prefix, such as `expire_approvals`."""
    subject_id: Mapped[str] = mapped_column(primary_key=True)
    """Id of the session, grant, turn, tool call, delivery, notification or change of an approval."""
    workspace_id: Mapped[str]
    failures: Mapped[int]
    """0 after transient errors alone."""
    error: Mapped[str]
    """The class of the last error. Its text may contain what no log may show."""
    since: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """Time of the first of the failures that followed each other within CONNECTED_SECONDS."""
    not_before: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """End of the pause."""


class Pause(NamedTuple):
    """The pause after a failure."""

    failures: int
    lasts: timedelta
    """How long the task has failed at the subject, transient errors included."""
    not_before: datetime
    """End of the pause."""


def step_back(task: str, subject_id: str, workspace_id: str, error: str, *, counts: bool = True) -> Pause:
    """Have the task leave the subject alone for a while.

    Failures within one pause count as one. `counts`: False after a transient error, which causes a pause and counts as none.
    """
    values = {"task": task, "subject": subject_id, "workspace": workspace_id, "error": error, "times": int(counts)}
    limits = {"first": FIRST_SECONDS, "longest": LONGEST_SECONDS, "connected": CONNECTED_SECONDS}
    with transaction(workspace_id) as db:
        pause = Pause(*db.rows(_STEP_BACK, **values, **limits)[0])
        if counts:
            metric.claim_failed(db, task)
        return pause


def recovered(task: str, subject_id: str, workspace_id: str) -> None:
    """Delete the subject's failures, because the task succeeded at it."""
    with transaction(workspace_id) as db:
        db.write("DELETE FROM failure WHERE task = %(task)s AND subject_id = %(subject)s", task=task, subject=subject_id)


def steps_back(task: str, subject: str) -> str:
    """Return an SQL condition: the task now leaves the subject alone whose id is in the column `subject`."""
    condition = f"task = '{task}' AND subject_id = {subject} AND not_before > {STARTED}"
    return f"EXISTS (SELECT FROM failure WHERE {condition})"


def to_retry(task: str, limit: int) -> list[tuple[str, str]]:
    """Return subjects at which the task failed and that it may try again, as `(subject id, workspace id)`."""
    due = f"""
        SELECT subject_id, workspace_id FROM failure WHERE task = %(task)s AND not_before <= {STARTED}
        ORDER BY not_before LIMIT %(limit)s
    """  # noqa: S608 - names of our own
    with transaction(role="system") as db:
        return [(subject_id, workspace_id) for subject_id, workspace_id in db.rows(due, task=task, limit=limit)]


def failure_counts(db: Db) -> list[tuple[str, str, int]]:
    """Return the workspace's failures of TOLD as `(task, class of the error, number of subjects)`, the most frequent first."""
    return [(task, error, subjects) for task, error, subjects in db.rows(_COUNTED)]


_APART = "failure.not_before < assent_now() - make_interval(secs => %(connected)s)"
_STEP_BACK = f"""
    INSERT INTO failure (task, subject_id, workspace_id, failures, error, since, not_before)
    SELECT %(task)s, %(subject)s, %(workspace)s, %(times)s, %(error)s, now, now + make_interval(secs => %(first)s)
    FROM assent_now() now
    ON CONFLICT (task, subject_id) DO UPDATE SET
        error = excluded.error,
        since = CASE WHEN {_APART} THEN excluded.since ELSE failure.since END,
        failures = CASE WHEN {_APART} THEN excluded.failures WHEN failure.not_before > excluded.since THEN failure.failures
            ELSE failure.failures + excluded.failures END,
        not_before = CASE WHEN {_APART} THEN excluded.not_before WHEN failure.not_before > excluded.since THEN failure.not_before
            ELSE excluded.since + make_interval(secs => least(%(longest)s, %(first)s * power(2, least(failure.failures, 20)))) END
    RETURNING failures, assent_now() - since, not_before
"""  # noqa: S608 - names of our own
_COUNTED = f"""
    SELECT task, error, COUNT(*) FROM failure WHERE {TOLD} GROUP BY task, error ORDER BY COUNT(*) DESC, task, error LIMIT 20
"""  # noqa: S608 - a condition of our own
