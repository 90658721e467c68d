"""Queued rows that are due: the hints that the dispatch sweep sends, again or for the first time.

The functions run as `assent_system`, in the sweeps' process alone. Claiming a row checks it again. Each returns a bounded number of
hints, and of turns, calls and deliveries the same number of each workspace or endpoint. Each reads few rows, however many wait.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from models.database.clock import STARTED
from models.database.leased import Leased
from models.database.transactions import Hint, transaction
from models.notices.notification import Notification
from models.operate.due import BATCH, HALTED
from models.outbox.delivery import Delivery
from models.outbox.endpoint import AT_ONCE as DELIVERIES_AT_ONCE
from models.session.hints import AT_ONCE, CALLS, CLAIMABLE, HELD_BACK, IN_QUEUE, QUEUED, RETURNED, front, hint_of, stamp
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.settings import settings

REHINT_AT_MOST_SECONDS = 60


def queues() -> list[str | None]:
    """Return the Celery queues in which calls wait. None is the tools' own queue."""
    with transaction(role="system") as db:
        names = {queue for statement in _QUEUES for (queue,) in db.rows(statement)}
        return [None, *sorted(names)]


def hints(table: type[Leased], limit: int = BATCH, *, queue: str | None = None, is_empty: bool = False) -> list[Hint]:
    """Stamp and return the hints of the rows at the front of each line that have none, or whose hint seems to be lost.

    The lines are those of the workspaces, and for deliveries those of the endpoints: a failing endpoint gets one hint, and none
    during its pause. A hint seems to be lost after `rehint_seconds` if the queue `is_empty`, else after the longer of this time and
    half the row's age. For calls, `queue` selects their queue, and calls that were held back are hinted too.
    """
    values = _values(limit, is_empty=is_empty) | {"queue": queue}
    with transaction(role="system") as db:
        if table is not ToolCall:
            statement, hint = _HINT[table]
            return [hint(row) for row in db.rows(statement, **values)]
        of_one_queue = queue is not None
        # The hint of a call that was held back is not lost: a worker took it.
        held_back = db.rows(_HINT_HELD_BACK[of_one_queue], **values | {"is_empty": False})
        return [hint_of("tool.run", row, queue) for row in (*db.rows(_HINT_CALLS[of_one_queue], **values), *held_back)]


def change_hints(limit: int = BATCH, *, is_empty: bool = False) -> list[Hint]:
    """Stamp and return the hints of changes of approvals, which become notifications. `is_empty`: as for `hints`."""
    with transaction(role="system") as db:
        return [Hint("deliver.fan_out", row) for row in db.rows(_HINT_CHANGES, **_values(limit, is_empty=is_empty))]


def _values(limit: int, *, is_empty: bool) -> dict[str, object]:
    rehint = timedelta(seconds=settings().rehint_seconds)
    return {"limit": limit, "rehint": rehint, "is_empty": is_empty}


# "Half their age" without dividing an interval: the hint is as old as it was late. A minute at most, because a worker that could
# not run the row then may be able to now. An empty queue holds no hint that a worker may still take.
_SILENT = f"""
    (hinted_at IS NULL OR (hinted_at < {STARTED} - %(rehint)s AND (
        %(is_empty)s OR {STARTED} - hinted_at > hinted_at - due_at
        OR hinted_at < {STARTED} - interval '{REHINT_AT_MOST_SECONDS} seconds'
    )))
"""


def _lines(table: str, column: str, waiting: str, before: str = "") -> str:
    """Return SQL of the recursive query `step (line)`: the values of `column` in the rows that wait, and a null.

    It steps by the index from one value to the next, however many rows have it. `before` are the index's columns before `column`.
    """
    first = f"ORDER BY {before}{column} LIMIT 1"
    return f"""
        WITH RECURSIVE step (line) AS (
            (SELECT {column} FROM {table} WHERE {waiting} {first})
            UNION ALL
            SELECT (SELECT {column} FROM {table} WHERE {waiting} AND {column} > step.line {first})
            FROM step WHERE step.line IS NOT NULL
        )
    """  # noqa: S608 - names of our own


def _fairly(table: str, column: str, waiting: str, *, join: str, before: str = "", most: str = str(AT_ONCE), returning: str) -> str:
    """Return SQL that stamps the silent rows at the front of each line, but for lines that the `join` leaves out.

    At the limit, each line gets a hint before one gets a second.
    """
    rows = front(table, waiting, line=f"{column} = step.line", order=f"{before}due_at", most=most)
    ids = f"""
        SELECT first.id FROM step JOIN {join} CROSS JOIN LATERAL (
            SELECT id, due_at, hinted_at, row_number() OVER (ORDER BY due_at) AS place FROM ({rows}) AS front
        ) AS first WHERE {_SILENT} ORDER BY place, first.due_at LIMIT %(limit)s
    """  # noqa: S608
    return _lines(table, column, waiting, before) + stamp(table, f"{waiting} AND {_SILENT}", ids, returning)


def _oldest(table: str, waiting: str, *, returning: str, order: str = "due_at") -> str:
    """Return SQL that stamps the silent rows that have been due longest."""
    ids = f"SELECT id FROM {table} WHERE {waiting} AND due_at <= {STARTED} AND {_SILENT} ORDER BY {order} LIMIT %(limit)s"  # noqa: S608
    return stamp(table, f"{waiting} AND {_SILENT}", ids, returning)


_OF_WORKSPACE = "id, workspace_id"
_GOES_ON = f"(SELECT {HALTED} AS halted) AS halts ON step.line <> ALL (halted)"
_IS_OPEN = f"""
    endpoint ON endpoint.id = step.line AND (endpoint.paused_until IS NULL OR endpoint.paused_until <= {STARTED})
"""
_IF_FAILING_ONE = f"CASE WHEN endpoint.failing_since IS NULL THEN {DELIVERIES_AT_ONCE} ELSE 1 END"
_BEGINS = f"workspace_id <> ALL ({HALTED})"
_TURNS = _fairly("turn", "workspace_id", QUEUED, join=_GOES_ON, returning=RETURNED["turn.run"])
_HINT_CALLS = {
    of_one_queue: _fairly("tool_call", "workspace_id", calls, join=_GOES_ON, before="queue, ", returning=RETURNED["tool.run"])
    for of_one_queue, calls in CALLS.items()
}
_HINT_HELD_BACK = {
    of_one_queue: _oldest(
        "tool_call", f"{HELD_BACK} AND {in_queue} AND {_BEGINS}", order="queue, due_at", returning=RETURNED["tool.run"]
    )
    for of_one_queue, in_queue in IN_QUEUE.items()
}
_DELIVERIES = _fairly("delivery", "endpoint_id", QUEUED, join=_IS_OPEN, most=_IF_FAILING_ONE, returning=_OF_WORKSPACE)
_HINT_CHANGES = _oldest("approval_change", "true", returning=_OF_WORKSPACE)
_NOTIFICATIONS = _oldest("notification", QUEUED, returning=_OF_WORKSPACE)
_HINT: dict[type[Leased], tuple[str, Callable[[tuple[Any, ...]], Hint]]] = {
    Turn: (_TURNS, partial(hint_of, "turn.run")),
    Delivery: (_DELIVERIES, partial(Hint, "deliver.send")),
    Notification: (_NOTIFICATIONS, partial(Hint, "deliver.notify")),
}
_QUEUES = [
    f"{_lines('tool_call', 'queue', waiting)} SELECT line FROM step WHERE line IS NOT NULL"  # noqa: S608
    for waiting in (CLAIMABLE, HELD_BACK)
]
