"""The deadline of an approval, and the reminder before it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from models.database.rows import Db
from models.errors import Conflict
from models.pure.times import rfc3339
from models.session.approval import events as approval_events
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.workspace.halt import deadline_after_halts, have_passed, passed_sql


class DeadlinePassed(Conflict):
    """The decision came after the deadline and changed nothing. `transact_in_time` then applies `on_timeout`."""

    def __init__(self, approval: Approval) -> None:
        self.workspace_id, self.session_id, self.approval_id = approval.workspace_id, approval.session_id, approval.id
        message = f"The deadline of approval {approval.id}, {rfc3339(approval.expires_at)}, has passed: nothing was decided."
        super().__init__(message, {"status": "expired"})


OVERDUE = passed_sql("expires_at", "deadline_from")
"""SQL that is true for an approval whose deadline has passed, as `overdue` says."""


def overdue(db: Db, approvals: Sequence[Approval], now: datetime) -> list[Approval]:
    """Return the approvals whose deadline has passed at `now`. Nobody can decide them any more."""
    late = have_passed(db, [(approval.expires_at, approval.deadline_from) for approval in approvals], now)
    return [approval for approval, is_late in zip(approvals, late, strict=True) if is_late]


def extend(locked: Locked, approval: Approval, seconds: float) -> None:
    """Move the deadline to `seconds` from now.

    Raises Conflict if the approval is decided or the new deadline is not later, DeadlinePassed if the deadline has passed.
    """
    if approval.status != "pending":
        message = f"Approval {approval.id} is already {approval.status}, by {approval.decided_by}."
        raise Conflict(message, {"status": approval.status})
    if overdue(locked.db, [approval], locked.now):
        raise DeadlinePassed(approval)
    until = locked.now + timedelta(seconds=seconds)
    before = deadline_after_halts(locked.db, approval.expires_at, approval.deadline_from, locked.now)
    if until <= before:
        raise Conflict(f"seconds: the deadline is {rfc3339(before)}, which is later already.", {"expires_at": rfc3339(before)})
    approval.expires_at, approval.deadline_from = until, locked.now
    locked.at(approval).emit(approval_events.extended(locked.db, approval, locked.actor))
    locked.at(approval).note("approval.extended", approval.id, expires_at=rfc3339(until))


def remind(locked: Locked, approval: Approval) -> None:
    """Remind people, once, that the approval waits."""
    approval.remind_at, approval.reminded_at = None, locked.now
    locked.at(approval).emit(approval_events.reminded(locked.db, approval))
    locked.at(approval).note("approval.reminded", approval.id)
