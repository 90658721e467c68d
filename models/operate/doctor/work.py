"""Work that stands still: due rows that nobody takes, leases that nobody renews, deadlines that nobody applies.

Each check is one statement with an index and a bound, as `assent_system`, over all workspaces. Nothing here is late by itself: the
sweeps act within seconds, so whatever is LATE_SECONDS behind says that a process is missing, stuck or too slow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from models.audit.cutting import sweep as cutting
from models.database import failure
from models.database.clock import STARTED
from models.database.transactions import transaction
from models.operate.doctor import sessions
from models.operate.doctor.finding import Advice, Finding
from models.operate.due import HALTED
from models.session.approval.deadline import OVERDUE
from models.session.approval.kinds import unknown_outcome
from models.workspace.halt import passed_sql

LATE_SECONDS = 60
MOST = 1000
"""Rows that one check counts at most."""


@dataclass(frozen=True)
class Check:
    """One statement. Its rows are id, workspace's id, since when, and why; each why is a finding of its own."""

    advice: Advice
    sql: str


_LATE = f"{STARTED} - interval '{LATE_SECONDS} seconds'"
_GOES_ON = f"workspace_id <> ALL ({HALTED})"
_NO_SWEEP = "start the processes `sweeps` and `beat`; their log says why they fail"
_NO_WORKER = "look at the process's log and at Flower; start more processes of this kind if all are busy"


def _rows(table: str, condition: str, since: str, why: str = "''", ids: str = "id, workspace_id") -> str:
    """Return the statement of a check: the rows that meet the condition, those of the earliest time in column `since` first."""
    return f"SELECT {ids}, {since}, {why} FROM {table} WHERE {condition} ORDER BY {since} LIMIT %(most)s"  # noqa: S608 - our names


def _late(table: str, condition: str, since: str, why: str = "''") -> str:
    """Return the statement of a check: rows whose time in column `since` passed long ago, but for halted workspaces."""
    return _rows(table, f"{condition} AND {since} <= {_LATE} AND {_GOES_ON}", since, why)


def _lapsed(table: str, noun: str) -> Check:
    return Check(
        Advice(
            f"lapsed_{table}",
            "critical",
            f"{noun} that a worker holds no longer",
            "its worker is dead or cut off, and the sweep that takes such rows back does not run, or fails at them",
            "nothing, until the sweep `rescue` runs again",
            _NO_SWEEP,
        ),
        _late(table, "status = 'running'", "lease_until"),
    )


def _untaken(table: str, noun: str, process: str, condition: str = "true") -> Check:
    silent = "the sweep `dispatch` sends no hints: it does not run, or Redis is away"
    return Check(
        Advice(
            f"queued_{table}",
            "critical",
            f"{noun} that no worker takes",
            f"the process `{process}` has hints of it and takes none: it is away, stuck, or all of them are busy",
            f"it begins as soon as a worker of `{process}` takes it; nothing is lost",
            _NO_WORKER,
        ),
        _late(table, f"status = 'queued' AND {condition}", "due_at", f"CASE WHEN hinted_at IS NULL THEN '{silent}' ELSE '' END"),
    )


def _undone(name: str, title: str, sweep: str, sql: str) -> Check:
    why = f"the sweep `{sweep}` does not run, or fails at them"
    return Check(Advice(name, "critical", title, why, f"nothing, until the sweep `{sweep}` runs again", _NO_SWEEP), sql)


def _pending_anchors(negation: str) -> str:
    """Return the statement of a check: anchors that have been pending for an hour, of workspaces with or without a legal hold.

    `negation`: `NOT` or empty. Anchors at which the sweep fails are left out: `failing` has these.
    """
    on_hold = "EXISTS (SELECT FROM legal_hold WHERE legal_hold.workspace_id = audit_anchor.workspace_id AND released_at IS NULL)"
    counted = f"EXISTS (SELECT FROM failure WHERE task = '{cutting.TASK}' AND subject_id = {_ANCHOR} AND {failure.TOLD})"
    condition = f"cut_at IS NULL AND created_at <= {STARTED} - interval '1 hour' AND NOT {counted} AND {negation} {on_hold}"
    return _rows("audit_anchor", condition, "created_at", ids=f"{_ANCHOR}, workspace_id")


_ANCHOR = "(audit_anchor.workspace_id || '/' || audit_anchor.seq)"
_SUBJECT = "subject_id, workspace_id"
_ALARM = "coalesce(seal_alarm, seal_stopped)"
_NEXT_APPROVALS = """(
    SELECT id, workspace_id, kind, created_at FROM approval WHERE status = 'pending' ORDER BY expires_at LIMIT 10000
) approval"""
"""Of more pending approvals, those with the earliest deadlines: an index finds them, however many there are."""
_OPEN_ENDPOINT = f"""NOT EXISTS (
    SELECT FROM endpoint WHERE endpoint.id = endpoint_id AND (failing_since IS NOT NULL OR paused_until > {STARTED})
)"""
CHECKS = (
    _lapsed("turn", "turns"),
    _lapsed("tool_call", "tool calls"),
    _lapsed("delivery", "deliveries of webhooks"),
    _lapsed("notification", "notifications"),
    _untaken("turn", "turns", "turns"),
    _untaken("tool_call", "tool calls", "tools", "held_back IS NULL"),
    _untaken("delivery", "deliveries of webhooks", "deliver", _OPEN_ENDPOINT),
    _untaken("notification", "notifications", "deliver"),
    Check(
        Advice(
            "held_back",
            "warning",
            "tool calls that no worker may run now",
            "",
            "a worker that can run it takes it within a minute of its start",
            "start a tools worker with the toolset or the files that the reason names, or cancel the call by an interrupt",
        ),
        _late("tool_call", "status = 'queued' AND held_back IS NOT NULL", "due_at", "held_back"),
    ),
    _undone(
        "overdue_approvals", "approvals whose deadline has passed", "expire_approvals",
        _late("approval", f"status = 'pending' AND expires_at <= {_LATE} AND {OVERDUE}", "expires_at"),
    ),
    _undone(
        "overdue_calls", "calls whose client gave no result in time", "expire_calls",
        _late("tool_call", f"status = 'with_client' AND {passed_sql('answer_by', 'deadline_from')}", "answer_by"),
    ),
    _undone(
        "unsettled_halts", "halts that have ended and whose deadlines were not moved", "end_halts",
        _rows("halt", f"ended_at <= {_LATE} AND settled_at IS NULL", "ended_at"),
    ),
    Check(
        Advice(
            "removals",
            "warning",
            "deleted sessions and endpoints that still have rows",
            "the sweep `remove_deleted` does not run, fails at them, or needs long",
            "the sweep goes on with each minute",
            _NO_SWEEP,
        ),
        _rows("removal", f"emptied_at IS NULL AND created_at <= {STARTED} - interval '1 hour'", "created_at", ids=_SUBJECT),
    ),
    Check(
        Advice(
            "anchors",
            "warning",
            "anchors of the audit whose acts are still there",
            "no seal covers the anchor yet, or the sweep `cut_audit` does not run",
            "the sweep deletes the acts once a seal of the sealer follows the anchor",
            "look at `audit_alarm` and at the log of `sweeps`; `assent audit verify` says from which act on nothing is sealed",
        ),
        _pending_anchors("NOT"),
    ),
    Check(
        Advice(
            "anchors_on_hold",
            "info",
            "anchors of the audit whose acts may be on a legal hold",
            "a legal hold of the workspace is open: `assent holds` says which",
            "the sweep deletes the acts once no hold covers any of them",
            "nothing, until the hold is released",
        ),
        _pending_anchors(""),
    ),
    Check(
        Advice(
            "failing",
            "warning",
            "rows at which a task fails",
            "",
            "the task tries again after pauses of at most 5 minutes; a turn, call or message ends with an error after 6 failures",
            "the log names the error by the row's id; an interrupt ends a session's run",
        ),
        _rows("failure", f"{failure.TOLD} AND task <> '{sessions.TASK}'", "since", "task || ' failed with ' || error", _SUBJECT),
    ),
    Check(
        Advice(
            "audit_alarm",
            "critical",
            "workspaces whose audit is not sealed",
            "",
            "nothing; all other work goes on",
            "run `assent audit verify` from another machine; docs/audit.md says what each reason means",
        ),
        _rows("workspace", f"{_ALARM} IS NOT NULL", "NULL::timestamptz", _ALARM, "'', id"),
    ),
    Check(
        Advice(
            "failing_endpoints",
            "warning",
            "endpoints that do not take their webhooks",
            "the endpoint answers with an error or not at all",
            "each delivery is tried again for three days, with growing pauses",
            "`assent webhooks list` says how an endpoint fails; repair or disable it",
        ),
        _rows("endpoint", f"failing_since <= {_LATE}", "failing_since", ids="id, ''"),
    ),
    Check(
        Advice(
            "halted",
            "info",
            "workspaces that are halted",
            "somebody halted them: `assent halt` says who and why",
            "nothing begins, and no deadline passes",
            "`assent halt off` when the reason is gone",
        ),
        _rows("halt", "ended_at IS NULL AND backup_at IS NULL", "started_at", ids="'', workspace_id"),
    ),
    Check(
        Advice(
            "restored",
            "warning",
            "workspaces that are halted since a restore",
            "the installation was restored from a backup, and nobody has confirmed it yet",
            "nothing begins, and no deadline passes",
            "decide what waits, confirm keys, grants and people, then run `assent restore --resume`",
        ),
        _rows("halt", "ended_at IS NULL AND backup_at IS NOT NULL", "started_at", ids="'', workspace_id"),
    ),
    Check(
        Advice(
            "unknown_outcomes",
            "warning",
            "calls whose outcome nobody knows",
            "their worker was lost after they began",
            "at its deadline the call is given up with an error result",
            "a person says what became of the call, in the inbox or by `assent approvals`",
        ),
        _rows(_NEXT_APPROVALS, unknown_outcome.KIND.sql, "created_at"),
    ),
)  # fmt: skip

_BROKEN = Advice(
    "broken_sessions",
    "critical",
    "sessions that go on by nothing",
    "",
    "nothing: no sweep acts on such a session",
    "end the run by an interrupt (`user.interrupt`) and send a new message; report the session's id with the log",
)


def findings(*, every_session: bool = False) -> Iterator[Finding]:
    """Yield what stands still. `every_session`: look at all sessions, and not only at those with acts within the last hour."""
    for check in CHECKS:
        with transaction(role="system") as db:
            rows = db.rows(check.sql, most=MOST)
        for why, group in groupby(sorted(rows, key=lambda row: row[3]), key=lambda row: row[3]):
            longest_first = sorted(group, key=lambda row: (row[2] is None, row[2]))
            yield Finding.of(check.advice, [(row[0], row[1], row[2]) for row in longest_first], why)
    yield from _broken(every_session)


def _broken(every_session: bool) -> Iterator[Finding]:
    """Yield the broken sessions, those that the sweep has stored included."""
    recent = sessions.acted(sessions.now() - sessions.LOOK_BACK)
    batches = sessions.every_session() if every_session else [sessions.ids_of_failures(), *recent]
    faults = {fault.session_id: fault for ids in batches for fault in sessions.faults(ids)}
    for name, group in groupby(sorted(faults.values(), key=lambda fault: (fault.name, fault.since)), key=lambda fault: fault.name):
        rows = [(fault.session_id, fault.workspace_id, fault.since) for fault in group]
        yield Finding.of(_BROKEN, rows, sessions.FAULTS[name])
