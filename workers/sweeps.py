"""The sweeps: bounded, idempotent repairs. Each reads ids, then acts on one session at a time. `workers.schedule` lists them.

Each returns what it did in words, which are empty if there was nothing to do.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import psycopg
from celery import beat

from models.audit import seal_sweep
from models.audit.cutting import sweep as cutting
from models.audit.principal import system
from models.database import clock, failure
from models.database.leased import Leased
from models.database.rows import Db
from models.database.transactions import Hint, transaction
from models.flow.carry_on import halts
from models.flow.decide.deadlines import expire_due, remind_due
from models.flow.judge import grants
from models.flow.judge.grants import release_waiting
from models.flow.run import results
from models.flow.run.results import rescue_call
from models.flow.run.turns import rescue_turn
from models.flow.spend import limits
from models.notices.notification import Notification
from models.operate import archive_retention, archiving, due, floods, queued, retention
from models.operate.doctor import sessions as doctor
from models.operate.failing import LeftForLater, TaskRow, bounded, isolated
from models.operate.metrics import adding_up
from models.operate.removals import remove_batch
from models.outbox.delivery import Delivery
from models.session.locked import Locked, try_lock
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.settings import settings
from workers import enqueue, liveness
from workers.celery import app
from workers.outcome import Sweep, did, tally, tell_lost

log = logging.getLogger(__name__)

MOST_SECONDS = 45.0
"""Longest time of a sweep that goes on batch by batch. It is below the time between two such sweeps, so these do not pile up."""
LONG_QUEUE = 1000
"""A queue with so many messages gets no hints from the dispatch sweep."""
MOST_SWEEPS = 200
"""With so many messages in the queue of sweeps, the beat sends no more."""
_PAUSE_SECONDS = 0.1
"""Between two looks of one dispatch sweep at queues that were full."""


class Scheduler(beat.Scheduler):
    """The beat's scheduler, which waits for workers that are away: they find the latest sweeps and not those of a night.

    It counts the messages, since an `expires` would compare the clocks of two machines.
    """

    def tick(self, *args: Any, **options: Any) -> Any:
        """Send the next sweep, and show that this loop runs."""
        liveness.alive()
        pause = super().tick(*args, **options)
        liveness.ready()
        return pause

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send a sweep that is due, unless many wait."""
        if (enqueue.backlog("sweeps") or 0) < MOST_SWEEPS:
            super().apply_entry(entry, producer=producer)


@app.task(name="sweep.dispatch", base=Sweep)
def dispatch() -> str:
    """Send hints for queued rows that are due and have had no hint recently. This makes up for every lost message.

    While more rows wait than a queue takes, the sweep goes on as soon as workers have taken hints, until the next sweep is due.
    """
    until = time.monotonic() + settings().sweep_seconds
    first = _send_hints()
    once = [
        _fill("deliver", queued.change_hints),
        _fill("deliver", partial(queued.hints, Notification)),
    ]  # their workers go on alone
    hints, more = sum(batch.hints for batch in (*first, *once)), any(batch.more for batch in first)
    while more and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
        batches = _send_hints()
        hints, more = hints + sum(batch.hints for batch in batches), any(batch.more for batch in batches)
    return did("sent hints again:", hints)


class _Batch(NamedTuple):
    """The hints that a queue got."""

    hints: int
    more: bool
    """True if more may wait."""


def _send_hints() -> list[_Batch]:
    """Send a batch of hints of turns, calls and deliveries to each queue."""
    batches = [_fill("turns", partial(queued.hints, Turn)), _fill("deliver", partial(queued.hints, Delivery))]
    return batches + [_fill(queue or "tools", partial(queued.hints, ToolCall, queue=queue)) for queue in queued.queues()]


def _fill(queue: str, hints: Callable[..., list[Hint]]) -> _Batch:
    """Send a batch of hints to a queue that is not long."""
    waiting = enqueue.backlog(queue)
    if waiting is None or waiting >= LONG_QUEUE:
        return _Batch(0, waiting is not None)
    limit = min(due.BATCH, LONG_QUEUE - waiting)
    batch = hints(limit, is_empty=waiting == 0)
    if not enqueue.publish(batch, {}):
        return _Batch(0, False)
    return _Batch(len(batch), len(batch) >= limit)


@app.task(name="sweep.rescue", base=Sweep)
def rescue() -> str:
    """Take back rows whose lease ended: turns and idempotent calls run again, a person settles any other call."""
    rows = [TaskRow(table, row.id, row.workspace_id, row.session_id) for table in _LEASED for row in due.lapsed(table)]
    return did("took back", sum(map(_rescue, rows)))


_LEASED: tuple[type[Leased], ...] = (Turn, ToolCall, Delivery, Notification)
_IN_SESSIONS: dict[Any, Callable[[Locked, str], None]] = {Turn: rescue_turn, ToolCall: rescue_call}
"""The verb that takes back a row of a locked session, by its table."""


def _rescue(row: TaskRow) -> bool:
    """Take one row back, and end its task in Flower. Returns False if there was nothing to do, or after an error."""
    lost: Leased | None = None
    try:
        with bounded("rescue", row, row.session_id or None), transaction(row.workspace_id) as db:
            lost = _take_back(db, row)
    except LeftForLater:
        return False
    if lost is not None and lost.task:
        tell_lost(lost.task)
    return lost is not None


def _take_back(db: Db, row: TaskRow) -> Leased | None:
    """Take back a row whose lease ended, and return it. None if another task has its session, or was faster."""
    if verb := _IN_SESSIONS.get(row.table):
        locked = try_lock(db, row.session_id, system(row.table.TASK, row.workspace_id))
        call_or_turn: Leased | None = db.get(row.table, row.id) if locked else None
        if locked is None or call_or_turn is None or not call_or_turn.is_lapsed(locked.now):
            return None
        verb(locked, row.id)
        return call_or_turn
    message: Delivery | Notification | None = db.get(row.table, row.id, lock=True)
    if message is None or not message.is_lapsed(clock.now(db)):
        return None
    message.lose(db)
    return message


@app.task(name="sweep.expire_approvals", base=Sweep)
def expire_approvals() -> str:
    """Expire approvals whose deadline has passed."""
    expired = 0
    for session_id, workspace_id in _sessions(due.overdue_approvals()):
        with isolated("expire_approvals", session_id, workspace_id):
            expired += expire_due(workspace_id, session_id)
    return did("expired", expired)


@app.task(name="sweep.expire_calls", base=Sweep)
def expire_calls() -> str:
    """End custom tool calls whose client posted no result in time."""
    expired = 0
    for session_id, workspace_id in _sessions(due.unanswered_calls()):
        with isolated("expire_calls", session_id, workspace_id):
            expired += results.expire_calls(workspace_id, session_id)
    return did("expired", expired)


@app.task(name="sweep.remind_approvers", base=Sweep)
def remind_approvers() -> str:
    """Remind people of waiting approvals, once each."""
    reminded = 0
    for session_id, workspace_id in _sessions(due.approvals_to_remind()):
        with isolated("remind_approvers", session_id, workspace_id):
            reminded += remind_due(workspace_id, session_id)
    return did("reminded", reminded)


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
    for session_id, workspace_id in _sessions(due.held_calls()):
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


@app.task(name="sweep.report")
def report() -> str:
    """Say that the sweeps of this process run: how many since its last report. The one task of a minute without work in Flower."""
    return tally.report()


_seals = seal_sweep.SealSweep()
_MOST_PASSED_ON = 3
"""How often one sweep of the seals is passed on to whichever process takes it."""


@app.task(name="sweep.seal_audit", base=Sweep)
def seal_audit(passed_on: str = "0") -> str:
    """Seal the new audit rows of all chains, and sign them.

    A process that leaves chains to others passes the sweep on. Else it could take every sweep of a minute, by chance, and
    raise the alarm that nobody seals. `passed_on` says how often that happened.
    """
    chains = _seals.run()
    if _seals.stands_aside and int(passed_on) < _MOST_PASSED_ON:
        enqueue.publish([Hint("sweep.seal_audit", (str(int(passed_on) + 1),))], {})
    if _seals.sealed_until is not None:
        adding_up.reach_seal(_seals.sealed_until.timestamp())
    return did("sealed chains of", chains)


@app.task(name="sweep.cut_audit", base=Sweep)
def cut_audit() -> str:
    """Delete the acts of the audit behind anchors that are sealed, one anchor after the other, until the time is over."""
    until, acts = time.monotonic() + MOST_SECONDS, 0
    for anchor in cutting.due():
        if time.monotonic() >= until:
            break
        with isolated(cutting.TASK, anchor.subject_id, anchor.workspace_id):
            acts += cutting.cut(anchor) or 0
    return did("cut acts:", acts)


@app.task(name="sweep.add_up_metrics", base=Sweep)
def add_up_metrics() -> str:
    """Add up the rows that metrics count, up to a minute ago. Returns no words: with any work there is something to add up."""
    adding_up.add_up(MOST_SECONDS)
    return ""


@app.task(name="sweep.watch_waiting_lists", base=Sweep)
def watch_waiting_lists() -> str:
    """Raise the alarm for people for whom too many approvals wait, and end it."""
    changes = 0
    for workspace_id in floods.to_watch():
        with isolated("watch_waiting_lists", workspace_id, workspace_id):
            changes += floods.watch(workspace_id)
    floods.publish()
    return did("floods of waiting lists began or ended:", changes)


_look = doctor.Look()


@app.task(name="sweep.check_sessions", base=Sweep)
def check_sessions() -> str:
    """Find sessions that go on by nothing, among those with acts since the last look. The log and `/readyz` name them."""
    return did("found broken sessions:", _look.run(MOST_SECONDS / 2))


@app.task(name="sweep.delete_old", base=Sweep)
def delete_old() -> str:
    """Delete old rows of each table of `retention.OLD`, batch by batch, until none is left or the time is over."""
    until, deleted = time.monotonic() + MOST_SECONDS, 0
    tables = list(retention.OLD)
    while tables and time.monotonic() < until:
        counts = {old: _delete_batch(old) for old in tables}
        deleted += sum(counts.values())
        tables = [old for old, count in counts.items() if count >= retention.BATCH]
    return did("deleted rows:", deleted)


@app.task(name="sweep.delete_archived", base=Sweep)
def delete_archived() -> str:
    """Delete sessions whose workspace keeps archived content no longer, until none is left or the time is over."""
    until, deleted = time.monotonic() + MOST_SECONDS, 0
    for session in archive_retention.due():
        if time.monotonic() >= until:
            break
        with isolated(archive_retention.TASK, session.id, session.workspace_id):
            deleted += archive_retention.delete(session)
    return did("deleted archived sessions:", deleted)


@app.task(name="sweep.archive", base=Sweep)
def archive() -> str:
    """Move old content of sessions at rest to the archive, part by part, until none is left or the time is over."""
    until, parts = time.monotonic() + MOST_SECONDS, 0
    sessions_before: set[archiving.DueSession] = set()
    while time.monotonic() < until and (sessions := set(archiving.due_sessions()) - sessions_before):
        sessions_before |= sessions
        for session in sessions:
            with isolated(archiving.TASK, session.id, session.workspace_id):
                while time.monotonic() < until and archiving.archive_next(session):
                    parts += 1
    return did("archived parts:", parts)


@app.task(name="sweep.remove_parts", base=Sweep)
def remove_parts() -> str:
    """Remove the contents of erased parts, and what a crash left."""
    count = 0
    for part_id, session_id, workspace_id in archiving.due_parts():
        with isolated("remove_parts", part_id, workspace_id):
            archiving.remove_part(part_id, session_id, workspace_id)
            count += 1
    return did("removed parts:", count)


@app.task(name="sweep.check_parts", base=Sweep)
def check_parts() -> str:
    """Check the parts that were not checked for longest, each once a day at most. Returns no words: it finds or it does not."""
    for part_id, workspace_id in archiving.parts_to_check():
        with isolated("check_parts", part_id, workspace_id):
            archiving.check_part(part_id, workspace_id)
    return ""


@app.task(name="sweep.remove_deleted", base=Sweep)
def remove_deleted() -> str:
    """Remove the rows of deleted sessions and endpoints, batch by batch, until none is left or the time is over."""
    until = time.monotonic() + MOST_SECONDS
    rows = deleted = due.removals()
    while rows and time.monotonic() < until:
        rows = [row for row in rows if _has_more(row)]
    return did("removed", len(deleted) - len(rows)) or did("still removing", len(rows))


def _has_more(row: due.Due) -> bool:
    """Remove one batch. Returns False once no row is left, or after an error."""
    with isolated("remove_deleted", row.id, row.workspace_id):
        if remove_batch(row.workspace_id, row.id):
            return True
    return False


def _delete_batch(old: retention.Old) -> int:
    """Delete one batch, and return how many rows. Returns 0 after an error, so that the other tables do not wait."""
    try:
        return retention.delete_old(old)
    except psycopg.Error as error:
        log.error("old rows of %s are left for a later sweep (%s)", old.table, type(error).__name__)
        return 0


def _sessions(rows: list[due.Due]) -> list[tuple[str, str]]:
    """Return the ids of the rows' sessions and workspaces, each session once."""
    return list({row.session_id: (row.session_id, row.workspace_id) for row in rows}.values())
