"""The sweeps: bounded, idempotent repairs, each a line in `workers.schedule`: find ids, then act on one session at a time."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from models import due, flow, seal
from models.db import transaction
from models.session import Session
from models.tool_call import ToolCall
from models.turn import Turn
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
            with _alone(found), transaction(found.workspace_id) as db:
                session = Session.try_lock(db, found.session_id)
                if session is not None:
                    verb(db, session, found.id)


@app.task(name="sweep.expire_approvals")
def expire_approvals() -> None:
    """Expire what nobody decided in time."""
    for found in _by_session(due.overdue_approvals()):
        with _alone(found):
            flow.expire_due(found.workspace_id, found.session_id)


@app.task(name="sweep.expire_calls")
def expire_calls() -> None:
    """Give up on clients that gave no result in time."""
    for found in _by_session(due.unanswered_calls()):
        with _alone(found):
            flow.expire_calls(found.workspace_id, found.session_id)


@app.task(name="sweep.remind_approvers")
def remind_approvers() -> None:
    """Remind people of what still waits, once each."""
    for found in _by_session(due.approvals_to_remind()):
        with _alone(found):
            flow.remind_due(found.workspace_id, found.session_id)


@app.task(name="sweep.release_granted")
def release_granted(grant_id: str | None = None, _workspace_id: str = "") -> None:
    """Allow what waits and is covered by a grant that was given meanwhile. Hinted with every grant; the beat looks again, until
    nothing can have been asked by somebody who did not see it."""
    for grant in due.new_grants(grant_id):
        waiting = due.waiting_for(grant)
        left = False
        for found in waiting:
            looked: int | None = None
            with _alone(found):
                looked = flow.release_waiting(found.workspace_id, found.session_id)
            left = left or looked is None
        to = waiting[-1].session_id if len(waiting) == due.BATCH else None
        if not left and (grant.ripe or to != grant.swept_to):
            flow.swept(grant.workspace_id, grant.id, to, over=grant.ripe and to is None)


_seals = seal.Sweep()


@app.task(name="sweep.seal_audit")
def seal_audit() -> None:
    """Seal what the audit's chains have grown by, and sign it."""
    _seals.run()


@app.task(name="sweep.forget_answers")
def forget_answers() -> None:
    """Delete the answers that were kept for retries and are too old for any."""
    due.forget_answers()


def _takes_more(queue: str) -> bool:
    waiting = enqueue.backlog(queue)
    return waiting is not None and waiting < LONG_QUEUE


def _by_session(found: list[due.Due]) -> list[due.Due]:
    return list({each.session_id: each for each in found}.values())


@contextmanager
def _alone(found: due.Due) -> Iterator[None]:
    """What cannot be dealt with now is left for the next sweep, and keeps nobody else from being dealt with."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - one row's trouble is logged, the others go on
        log.error("%s of %s: left for the next sweep (%s)", found.id, found.session_id, type(error).__name__)
