"""The sweeps that let waiting work go on: after a new grant, at a limit that has room again, after a halt."""

import time

from models.database import failure
from models.flow.carry_on import halts
from models.flow.judge import grants
from models.flow.judge.grants import release_waiting
from models.flow.spend import limits
from models.operate import due
from models.operate.failing import isolated
from workers.celery import app
from workers.outcome import MOST_SECONDS, Sweep, did


@app.task(name="sweep.release_granted", base=Sweep)
def release_granted(grant_id: str | None = None, _workspace_id: str = "") -> str:
    """Release waiting calls that a new grant covers.

    Every grant sends a hint. The beat repeats the sweep until every transaction that may have asked without seeing the grant has
    ended.
    """
    total = 0
    for session_id, workspace_id in failure.to_retry(_OF_SESSION, due.BATCH):
        with isolated(_OF_SESSION, session_id, workspace_id):
            calls = release_waiting(workspace_id, session_id)
            if calls is not None:
                failure.recovered(_OF_SESSION, session_id, workspace_id)
                total += calls
    for grant in due.new_grants(grant_id):
        with isolated("release_granted", grant.id, grant.workspace_id):
            total += _release_for(grant)
    return did("released", total)


_OF_SESSION = "release_granted in session"
"""The name for failures in one session. The sweep skips that session, so that the grant's other sessions do not wait."""


def _release_for(grant: due.NewGrant) -> int:
    """Release calls in the next sessions that wait for a grant. If a session is locked, the next sweep repeats all of them.

    Returns how many calls were released.
    """
    waiting = due.waiting_for(grant)
    counts: list[int | None] = []
    for row in waiting:
        with isolated(_OF_SESSION, row.session_id, row.workspace_id):
            counts.append(release_waiting(row.workspace_id, row.session_id))
    locked = None in counts
    to = waiting[-1].session_id if len(waiting) == due.BATCH else None
    if not locked and (grant.ripe or to != grant.swept_to):
        grants.swept(grant.workspace_id, grant.id, to, over=grant.ripe and to is None)
    return sum(filter(None, counts))


@app.task(name="sweep.resume_at_limits", base=Sweep)
def resume_at_limits() -> str:
    """Resume sessions at a spend limit that has room again: the limit was raised or deleted, or its next period began."""
    until, resumed = time.monotonic() + MOST_SECONDS, 0
    for workspace_id in due.workspaces_at_limits():
        session_id = ""
        while time.monotonic() < until and (session_ids := limits.sessions_to_resume(workspace_id, session_id)):
            for session_id in session_ids:
                with isolated("resume_at_limits", session_id, workspace_id):
                    limits.resume_at_limit(workspace_id, session_id)
                    resumed += 1
    return did("resumed", resumed)


@app.task(name="sweep.end_halts", base=Sweep)
def end_halts() -> str:
    """Resume sessions after a halt: give held calls to their clients, and move the deadlines that stood still."""
    resumed = 0
    for session_id, workspace_id in due.sessions_of(due.held_calls()):
        with isolated("end_halts", session_id, workspace_id):
            halts.resume(workspace_id, session_id)
            resumed += 1
    for halt in due.ended_halts():
        with isolated("end_halts", halt.id, halt.workspace_id):
            stopped = due.stopped_by(halt)
            for row in stopped:
                with isolated("end_halts", row.session_id, row.workspace_id):
                    halts.resume(row.workspace_id, row.session_id)
                    resumed += 1
            if not stopped and not due.stopped_by(halt, 1, failing=True):
                halts.settled(halt.workspace_id, halt.id)
    return did("resumed", resumed)
