"""Queued rows that are due: the hints that the dispatch sweep sends again.

The functions run as `assent_system`, without locks, in the sweeps' process alone. Claiming a row checks it again.
"""

from datetime import timedelta

from models.database.clock import STARTED
from models.database.transactions import Hint, transaction
from models.flow.due import BATCH, HALTED
from models.outbox.endpoint import AT_ONCE
from models.session.tool_call import ToolCall
from models.session.turn import Turn
from models.settings import settings

REHINT_AT_MOST_SECONDS = 60


def queues() -> list[str | None]:
    """Return the Celery queues in which calls wait. None is the tools' own queue."""
    with transaction(role="system") as db:
        return [None, *(queue for (queue,) in db.rows(_QUEUES))]


# Steps from one queue to the next by the index, however many calls wait in each.
_QUEUES = """
    WITH RECURSIVE step (queue) AS (
        (SELECT queue FROM tool_call WHERE status = 'queued' AND queue IS NOT NULL ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT t.queue FROM tool_call t WHERE t.status = 'queued' AND t.queue > step.queue ORDER BY t.queue LIMIT 1)
        FROM step WHERE step.queue IS NOT NULL
    ) SELECT queue FROM step WHERE queue IS NOT NULL
"""


def hints(table: type[Turn] | type[ToolCall], limit: int = BATCH, *, queue: str | None = None) -> list[Hint]:
    """Stamp and return the hints of queued rows that are due and silent for the longer of `rehint_seconds` and half their age.

    For calls, `queue` selects their queue.
    """
    task = "turn.run" if table is Turn else "tool.run"
    values = {"limit": limit, "queue": queue, "rehint": timedelta(seconds=settings().rehint_seconds)}
    calls = _HINT_CALLS.format(queue=_IN_QUEUE[queue is not None])
    with transaction(role="system") as db:
        rows = db.rows(_HINT_TURNS if table is Turn else calls, **values)
        return [Hint(task, row, queue) for row in rows]


_BEGINS = f"workspace_id <> ALL ({HALTED})"
_IN_QUEUE = {False: "queue IS NULL", True: "queue = %(queue)s"}
"""Two conditions, so that the tools' own queue and a named queue each use the index."""
# "Half their age" without dividing an interval: the hint is as old as it was late. A minute at most, because a worker that could
# not run the row then may be able to now.
_SILENT = f"""
    due_at <= {STARTED} AND (hinted_at IS NULL OR (hinted_at < {STARTED} - %(rehint)s AND (
        {STARTED} - hinted_at > hinted_at - due_at OR hinted_at < {STARTED} - interval '{REHINT_AT_MOST_SECONDS} seconds'
    )))
"""
_OLDEST = "ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED"
_HINT_TURNS = f"""
    UPDATE turn SET hinted_at = {STARTED} WHERE id IN (
        SELECT id FROM turn WHERE status = 'queued' AND ended_at IS NULL AND {_BEGINS} AND {_SILENT} {_OLDEST}
    ) RETURNING id, session_id, workspace_id
"""  # noqa: S608 - names of our own
_HINT_CALLS = f"""
    UPDATE tool_call SET hinted_at = {STARTED} WHERE id IN (
        SELECT id FROM tool_call WHERE status = 'queued' AND {{queue}} AND {_BEGINS} AND {_SILENT} {_OLDEST}
    ) RETURNING id, session_id, workspace_id
"""  # noqa: S608


def delivery_hints(limit: int = BATCH) -> list[Hint]:
    """Stamp and return the hints of deliveries, at most AT_ONCE of each endpoint, so that a long queue for one delays no other.

    A failing endpoint gets one hint, and none during its pause.
    """
    values = {"limit": limit, "each": AT_ONCE, "rehint": timedelta(seconds=settings().rehint_seconds)}
    with transaction(role="system") as db:
        return [Hint("deliver.send", row) for row in db.rows(_HINT_DELIVERIES, **values)]


# Steps from one endpoint to the next by the index, as in `_QUEUES`.
_HINT_DELIVERIES = f"""
    WITH RECURSIVE step (endpoint_id) AS (
        (SELECT endpoint_id FROM delivery WHERE status = 'queued' ORDER BY endpoint_id LIMIT 1)
        UNION ALL
        SELECT (
            SELECT d.endpoint_id FROM delivery d WHERE d.status = 'queued' AND d.endpoint_id > step.endpoint_id ORDER BY 1 LIMIT 1
        ) FROM step WHERE step.endpoint_id IS NOT NULL
    )
    UPDATE delivery SET hinted_at = {STARTED} WHERE id IN (
        SELECT next.id FROM step JOIN endpoint ON endpoint.id = step.endpoint_id
            AND (endpoint.paused_until IS NULL OR endpoint.paused_until <= {STARTED})
        CROSS JOIN LATERAL (
            SELECT id, due_at FROM delivery WHERE status = 'queued' AND endpoint_id = step.endpoint_id AND {_SILENT}
            ORDER BY due_at, id LIMIT CASE WHEN endpoint.failing_since IS NULL THEN %(each)s ELSE 1 END FOR UPDATE SKIP LOCKED
        ) AS next ORDER BY next.due_at LIMIT %(limit)s
    ) RETURNING id, workspace_id
"""  # noqa: S608


def notification_hints(limit: int = BATCH) -> list[Hint]:
    """Stamp and return the hints of notifications, and of changes of approvals, which become notifications."""
    values = {"limit": limit, "rehint": timedelta(seconds=settings().rehint_seconds)}
    with transaction(role="system") as db:
        changes, notifications = db.rows(_HINT_CHANGES, **values), db.rows(_HINT_NOTIFICATIONS, **values)
    return [*(Hint("deliver.fan_out", row) for row in changes), *(Hint("deliver.notify", row) for row in notifications)]


_HINT_CHANGES = f"""
    UPDATE approval_change SET hinted_at = {STARTED} WHERE id IN (SELECT id FROM approval_change WHERE {_SILENT})
    RETURNING id, workspace_id
"""  # noqa: S608
_HINT_NOTIFICATIONS = f"""
    UPDATE notification SET hinted_at = {STARTED} WHERE id IN (SELECT id FROM notification WHERE status = 'queued' AND {_SILENT})
    RETURNING id, workspace_id
"""  # noqa: S608
