"""The sweeps: bounded, idempotent repairs, each a line in `workers.schedule`: find ids, then act on one session at a time."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from models import flow
from models.audit import seals
from models.database.transactions import transaction
from models.flow import due
from models.session import sweep_failure
from models.session.session import Session
from models.session.tool_call import ToolCall
from models.session.turn import Turn
from workers import enqueue
from workers.celery import app

log = logging.getLogger(__name__)

LONG_QUEUE = 1000
"""Messages. A queue that long needs no more hints."""


@app.task(name="sweep.dispatch")
def dispatch() -> None:
    """Send again what is queued and due and was not hinted for a while: the guarantee behind every enqueue."""
    if _takes_more("turns"):
        enqueue.publish(due.hints(Turn), {})
    for queue in due.queues():
        if _takes_more(queue or "tools"):
            enqueue.publish(due.hints(ToolCall, queue=queue), {})


@app.task(name="sweep.rescue")
def rescue() -> None:
    """Take back what a dead worker held: turns and idempotent calls go again, any other call is put to a person."""
    for table, verb in ((Turn, flow.rescue_turn), (ToolCall, flow.rescue_call)):
        for found in due.lapsed(table):
            with _alone("rescue", found.session_id, found.workspace_id), transaction(found.workspace_id) as db:
                session = Session.try_lock(db, found.session_id)
                if session is not None:
                    verb(db, session, found.id)


@app.task(name="sweep.expire_approvals")
def expire_approvals() -> None:
    """Expire what nobody decided in time."""
    for session_id, workspace_id in _sessions(due.overdue_approvals()):
        with _alone("expire_approvals", session_id, workspace_id):
            flow.expire_due(workspace_id, session_id)


@app.task(name="sweep.expire_calls")
def expire_calls() -> None:
    """Give up on clients that gave no result in time."""
    for session_id, workspace_id in _sessions(due.unanswered_calls()):
        with _alone("expire_calls", session_id, workspace_id):
            flow.expire_calls(workspace_id, session_id)


@app.task(name="sweep.remind_approvers")
def remind_approvers() -> None:
    """Remind people of what still waits, once each."""
    for session_id, workspace_id in _sessions(due.approvals_to_remind()):
        with _alone("remind_approvers", session_id, workspace_id):
            flow.remind_due(workspace_id, session_id)


@app.task(name="sweep.release_granted")
def release_granted(grant_id: str | None = None, _workspace_id: str = "") -> None:
    """Allow what waits and is covered by a grant that was given meanwhile. Hinted with every grant; the beat looks again, until
    nothing can have been asked by somebody who did not see it."""
    for session_id, workspace_id in sweep_failure.to_retry(_OF_SESSION, due.BATCH):
        with _alone(_OF_SESSION, session_id, workspace_id):
            if flow.release_waiting(workspace_id, session_id) is not None:
                sweep_failure.recovered(_OF_SESSION, session_id, workspace_id)
    for grant in due.new_grants(grant_id):
        with _alone("release_granted", grant.id, grant.workspace_id):
            _release_for(grant)


_OF_SESSION = "release_granted in session"
"""Sessions at which the sweep failed. It has passed them by, so that they do not hold up the grant's other sessions."""


def _release_for(grant: due.NewGrant) -> None:
    """Look at the next sessions that wait for a grant, and at all of them again if somebody else works on one."""
    waiting = due.waiting_for(grant)
    locked = False
    for found in waiting:
        with _alone(_OF_SESSION, found.session_id, found.workspace_id):
            locked |= flow.release_waiting(found.workspace_id, found.session_id) is None
    to = waiting[-1].session_id if len(waiting) == due.BATCH else None
    if not locked and (grant.ripe or to != grant.swept_to):
        flow.swept(grant.workspace_id, grant.id, to, over=grant.ripe and to is None)


@app.task(name="sweep.end_halts")
def end_halts() -> None:
    """After a halt: give held calls to their clients, and move the deadlines that stood still."""
    for session_id, workspace_id in _sessions(due.held_calls()):
        with _alone("end_halts", session_id, workspace_id):
            flow.resume(workspace_id, session_id)
    for halt in due.ended_halts():
        with _alone("end_halts", halt.id, halt.workspace_id):
            stopped = due.stopped_by(halt)
            for found in stopped:
                flow.resume(found.workspace_id, found.session_id)
            if not stopped:
                flow.settled(halt.workspace_id, halt.id)


_seals = seals.Sweep()


@app.task(name="sweep.seal_audit")
def seal_audit() -> None:
    """Seal what the audit's chains have grown by, and sign it."""
    _seals.run()


@app.task(name="sweep.forget_answers")
def forget_answers() -> None:
    """Delete the answers that were kept for retries and are too old for any, and failures of sweeps that are over."""
    due.forget_answers()
    sweep_failure.forget_old()


def _takes_more(queue: str) -> bool:
    waiting = enqueue.backlog(queue)
    return waiting is not None and waiting < LONG_QUEUE


def _sessions(found: list[due.Due]) -> list[tuple[str, str]]:
    """Each session once, with its workspace."""
    return list({each.session_id: (each.session_id, each.workspace_id) for each in found}.values())


@contextmanager
def _alone(sweep: str, subject_id: str, workspace_id: str) -> Iterator[None]:
    """Keep one subject's failure from the others: the subject steps back, and a later sweep tries again.

    Raises SQLAlchemyError where not even that can be written: the database is away, and the next beat tries again.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - one subject's trouble is logged, the others go on
        log.error("%s of %s: left for a later sweep (%s)", sweep, subject_id, type(error).__name__)
        sweep_failure.step_back(sweep, subject_id, workspace_id)
