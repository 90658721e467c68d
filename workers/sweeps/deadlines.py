"""The sweeps of deadlines: approvals that expire, calls without a client's result, people who are reminded."""

from models.flow.decide.deadlines import expire_due, remind_due
from models.flow.run import results
from models.operate import due
from models.operate.failing import isolated
from workers.celery import app
from workers.outcome import Sweep, did


@app.task(name="sweep.expire_approvals", base=Sweep)
def expire_approvals() -> str:
    """Expire approvals whose deadline has passed."""
    expired = 0
    for session_id, workspace_id in due.sessions_of(due.overdue_approvals()):
        with isolated("expire_approvals", session_id, workspace_id):
            expired += expire_due(workspace_id, session_id)
    return did("expired", expired)


@app.task(name="sweep.expire_calls", base=Sweep)
def expire_calls() -> str:
    """End custom tool calls whose client posted no result in time."""
    expired = 0
    for session_id, workspace_id in due.sessions_of(due.unanswered_calls()):
        with isolated("expire_calls", session_id, workspace_id):
            expired += results.expire_calls(workspace_id, session_id)
    return did("expired", expired)


@app.task(name="sweep.remind_approvers", base=Sweep)
def remind_approvers() -> str:
    """Remind people of waiting approvals, once each."""
    reminded = 0
    for session_id, workspace_id in due.sessions_of(due.approvals_to_remind()):
        with isolated("remind_approvers", session_id, workspace_id):
            reminded += remind_due(workspace_id, session_id)
    return did("reminded", reminded)
