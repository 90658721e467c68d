"""Figures of one workspace for operators, read from the rows at each request."""

from dataclasses import dataclass

from models.database.exchange import Statement
from models.database.transactions import transaction
from models.session.approval.deadline import OVERDUE

MOST = 10_000
"""Approvals that the figures count at most: more of them would make each request slower."""


@dataclass(frozen=True)
class Gauges:
    """The figures of one workspace at one moment. Ages are in seconds, and 0 where nothing waits."""

    queued_turns: int
    running_turns: int
    oldest_queued_turn_seconds: float
    queued_calls: int
    running_calls: int
    held_back_calls: int
    """Queued calls that no worker claims, for a reason that `/readyz` names."""
    oldest_queued_call_seconds: float
    pending_approvals: int
    """At most MOST. Then the next two figures are those of the approvals with the earliest deadlines."""
    oldest_pending_approval_seconds: float
    overdue_approvals: int
    """Pending approvals whose deadline has passed. Their number grows only while no sweep runs."""
    audit_alarm: int
    """1 while the workspace's audit is not sealed, for a reason that `/readyz` names."""


def gauges(workspace_id: str) -> Gauges:
    """Return the workspace's figures."""
    with transaction(workspace_id) as db:
        turns, calls, approvals, alarm = db.read(_TURNS, _CALLS, Statement(_APPROVALS, {"most": MOST}), _ALARM)
        return Gauges(*turns[0], *calls[0], *approvals[0], *alarm[0])


_TURNS = Statement(
    """
    SELECT COUNT(*), (SELECT COUNT(*) FROM turn WHERE workspace_id = current_setting('assent.workspace') AND status = 'running'),
        COALESCE(EXTRACT(EPOCH FROM assent_now() - MIN(due_at) FILTER (WHERE due_at <= assent_now())), 0)
    FROM turn WHERE workspace_id = current_setting('assent.workspace') AND status = 'queued'
    """,
    {},
)
_CALLS = Statement(
    """
    SELECT COUNT(*) FILTER (WHERE status = 'queued'), COUNT(*) FILTER (WHERE status = 'running'), COUNT(held_back),
        COALESCE(EXTRACT(EPOCH FROM assent_now() - MIN(due_at) FILTER (WHERE status = 'queued' AND due_at <= assent_now())), 0)
    FROM tool_call WHERE workspace_id = current_setting('assent.workspace') AND status IN ('queued', 'running')
    """,
    {},
)
_APPROVALS = f"""
    SELECT COUNT(*), COALESCE(EXTRACT(EPOCH FROM assent_now() - MIN(created_at)), 0), COUNT(*) FILTER (WHERE {OVERDUE})
    FROM (
        SELECT created_at, expires_at, deadline_from FROM approval
        WHERE workspace_id = current_setting('assent.workspace') AND status = 'pending' ORDER BY expires_at LIMIT %(most)s
    ) approval
"""  # noqa: S608 - conditions of our own
_ALARM = Statement(
    "SELECT COUNT(COALESCE(seal_alarm, seal_stopped)) FROM workspace WHERE id = current_setting('assent.workspace')", {}
)
