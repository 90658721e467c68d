"""Invariants of sessions as one statement: a session whose rows contradict each other goes on by nothing.

Every transaction keeps them. So a statement, which sees one moment, finds nothing unless code or a person broke a session. The
sweep `check_sessions` looks at every session with an act of the audit since its last look, and stores what it finds as a failure.
Tests hold the same statement against each session whose invariants they check.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from models.database import clock, failure
from models.database.transactions import transaction
from models.pure.states import NEEDS_PERSON, SETTLED, WITH_CLIENT
from models.session.event.row import MESSAGE, UNREAD
from models.session.thread.progress import BUSIEST_FIRST

log = logging.getLogger(__name__)

TASK = "check_sessions"
"""The name under which faults are stored as failures."""
BATCH = 1000
"""Sessions that one statement looks at."""
IDS = 20_000
"""Ids that one statement finds: each reads all recent acts."""
LOOK_BACK = timedelta(hours=1)
"""How far the first look of a process goes back."""
LATE = timedelta(seconds=60)
"""Longer than any transaction may take: an act is committed at most so much later than its own time."""

FAULTS = {
    "runs_without_work": "it runs, and none of its turns and calls is queued or held by a worker",
    "waits_for_nobody": "it waits, and nothing of it waits for a person, for money or for the client: no turn followed a decision",
    "asks_nobody": "a call waits for people, and no approval of it is pending",
    "works_while_it_waits": "it works and waits at once",
    "rests_with_work": "it rests or has ended, and a turn, a call or a question about money is open",
    "rests_with_messages": "it rests, and a message waits to be read",
    "differs_from_its_threads": "its status does not follow from those of its threads",
    "outlives_its_coordinator": "a thread goes on, and the thread that began it has ended",
    "asks_for_nobody": "people are asked in the name of a thread that is gone, or that waits for nobody",
    "miscounts_messages": "more or fewer messages between its threads wait than its threads count: one is lost, or is read twice",
}
"""What is wrong, by the name of the fault."""


@dataclass(frozen=True)
class Fault:
    """A contradiction in the rows of one session."""

    session_id: str
    workspace_id: str
    name: str
    """One of `FAULTS`."""
    since: datetime
    """The time of the session's last event."""


def faults(session_ids: Sequence[str]) -> list[Fault]:
    """Return the faults of these sessions, those of a thread by itself once for each thread. Sessions that are gone have none."""
    with transaction(role="system") as db:
        return [
            Fault(*row)
            for row in db.rows(_FAULTS, sessions=list(session_ids), settled=sorted(SETTLED), busiest=list(BUSIEST_FIRST))
        ]


def every_session() -> Iterator[list[str]]:
    """Return the ids of all sessions, in batches."""
    return _in_batches(_EVERY)


def acted(since: datetime) -> Iterator[list[str]]:
    """Return the ids of the sessions with acts of the audit after `since`, in batches."""
    return _in_batches(_ACTED, since=since)


def ids_of_failures() -> list[str]:
    """Return the ids of sessions that were found broken, and may still be."""
    return _ids("SELECT subject_id FROM failure WHERE task = %(task)s ORDER BY not_before DESC LIMIT %(limit)s", task=TASK)


def now() -> datetime:
    """Return the database's time."""
    with transaction(role="system") as db:
        return clock.now(db)


class Look:
    """The sweep's memory: the time up to which it has looked."""

    def __init__(self) -> None:
        self.until: datetime | None = None

    def run(self, seconds: float) -> int:
        """Look at what has changed, for at most so many seconds. Store and log each fault. Returns how many sessions are broken."""
        end, at = time.monotonic() + seconds, now()
        broken = self._retry()
        for ids in acted((self.until or at - LOOK_BACK) - LATE):
            broken |= store(faults([session_id for session_id in ids if session_id not in broken]))
            if time.monotonic() > end:
                return len(broken)  # the next run begins again where this one began
        self.until = at
        return len(broken)

    def _retry(self) -> set[str]:
        """Look again at sessions that were broken, after growing pauses. Returns the ids of those that still are."""
        before = dict(failure.to_retry(TASK, BATCH))
        broken = store(faults(list(before))) if before else set()
        for session_id in before.keys() - broken:
            failure.recovered(TASK, session_id, before[session_id])
        return broken


def store(broken: list[Fault]) -> set[str]:
    """Store and log faults, so that `/readyz` and the doctor tell of them. Returns the ids of the sessions."""
    for fault in broken:
        failure.step_back(TASK, fault.session_id, fault.workspace_id, fault.name)
        log.error("%s of %s is broken (%s): %s", fault.session_id, fault.workspace_id, fault.name, FAULTS[fault.name])
    return {fault.session_id for fault in broken}


def _in_batches(statement: str, **values: object) -> Iterator[list[str]]:
    """Yield the ids that a statement finds behind each other, BATCH at a time."""
    after = ""
    while ids := _ids(statement, after=after, **values):
        yield from (ids[first : first + BATCH] for first in range(0, len(ids), BATCH))
        after = ids[-1]


def _ids(statement: str, **values: object) -> list[str]:
    with transaction(role="system") as db:
        return [session_id for (session_id,) in db.rows(statement, limit=IDS, **values)]


_EVERY = "SELECT id FROM session WHERE id > %(after)s ORDER BY id LIMIT %(limit)s"
# OFFSET 0: the acts since then are few and found by their time. In the order of chains, Postgres might read the acts of all time.
_ACTED = """
    SELECT chain FROM (SELECT DISTINCT chain FROM audit WHERE at > %(since)s AND chain <> workspace_id OFFSET 0) recent
    WHERE chain > %(after)s ORDER BY chain LIMIT %(limit)s
"""
_TO_PEOPLE = ", ".join(f"'{status}'" for status in sorted(NEEDS_PERSON))
# Only calls of a thread's present turn may be open. `money` is the question that belongs to no call.
_OF_THREAD = f"""
    SELECT thread.session_id, thread.workspace_id, thread.status, thread.unread,
        coalesce(turn.status IN ('queued', 'running'), false) AS active, calls.*, money.asked AS money
    FROM thread
    LEFT JOIN turn ON turn.id = thread.turn_id
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE status IN ('queued', 'running', 'held')) AS working,
            count(*) FILTER (WHERE status = 'running') AS running,
            count(*) FILTER (WHERE status IN ({_TO_PEOPLE}, '{WITH_CLIENT}')) AS needing,
            count(*) FILTER (WHERE status <> ALL (%(settled)s)) AS unsettled,
            count(*) FILTER (WHERE status IN ({_TO_PEOPLE}) AND NOT EXISTS (
                SELECT FROM approval WHERE approval.tool_call_id = tool_call.id AND approval.status = 'pending'
            )) AS unasked
        FROM tool_call WHERE tool_call.turn_id = thread.turn_id
    ) calls
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT FROM approval WHERE approval.id = thread.cap_approval_id AND approval.status = 'pending'
        ) AS asked
    ) money
    WHERE thread.session_id = ANY (%(sessions)s)
"""  # noqa: S608 - statuses of our own
_BETWEEN_THREADS = f"""
    SELECT thread.session_id, 'outlives_its_coordinator' FROM thread
    JOIN thread parent ON parent.session_id = thread.session_id AND parent.id = thread.parent_id
    WHERE thread.session_id = ANY (%(sessions)s) AND parent.status = 'terminated' AND thread.status <> 'terminated'
    UNION ALL
    SELECT session_id, 'asks_for_nobody' FROM approval WHERE session_id = ANY (%(sessions)s) AND status = 'pending'
    AND NOT EXISTS (
        SELECT FROM thread WHERE thread.session_id = approval.session_id AND thread.id = approval.thread_id
        AND thread.status NOT IN ('idle', 'terminated')
    )
    UNION ALL
    SELECT several.session_id, 'miscounts_messages'
    FROM (SELECT DISTINCT session_id FROM thread WHERE session_id = ANY (%(sessions)s) AND parent_id IS NOT NULL) several
    CROSS JOIN LATERAL (
        SELECT FROM thread LEFT JOIN (
            SELECT thread_id, count(*) AS waiting FROM event
            WHERE session_id = several.session_id AND {MESSAGE} AND {UNREAD} GROUP BY thread_id
        ) messages ON messages.thread_id = thread.id
        WHERE thread.session_id = several.session_id AND status <> 'terminated' AND unread <> coalesce(waiting, 0)
    ) miscounted
"""  # noqa: S608 - conditions of our own
_FAULTS = f"""
    SELECT session.id, session.workspace_id, fault, session.updated_at
    FROM session JOIN (
        SELECT session_id, CASE
            WHEN unasked > 0 THEN 'asks_nobody'
            WHEN status = 'running' AND NOT active AND working = 0 AND needing = 0 THEN 'runs_without_work'
            WHEN status = 'rescheduling' AND NOT active THEN 'runs_without_work'
            WHEN status = 'stopping' AND running = 0 THEN 'runs_without_work'
            WHEN status = 'waiting' AND needing = 0 AND NOT money THEN 'waits_for_nobody'
            WHEN status = 'waiting' AND active THEN 'works_while_it_waits'
            WHEN status = 'running' AND (needing > 0 OR money) THEN 'works_while_it_waits'
            WHEN status IN ('idle', 'terminated') AND (active OR unsettled > 0 OR money) THEN 'rests_with_work'
            WHEN status = 'idle' AND unread > 0 THEN 'rests_with_messages'
        END AS fault
        FROM ({_OF_THREAD}) threads
        UNION ALL
        SELECT session.id, 'differs_from_its_threads' FROM session CROSS JOIN LATERAL (
            SELECT status FROM thread WHERE thread.session_id = session.id
            ORDER BY array_position(%(busiest)s, status::text) LIMIT 1
        ) busiest
        WHERE session.id = ANY (%(sessions)s) AND busiest.status <> session.status
        UNION ALL {_BETWEEN_THREADS}
    ) broken ON session.id = broken.session_id
    WHERE fault IS NOT NULL ORDER BY session.updated_at
"""  # noqa: S608
