"""Tasks that fail at a row: each failure is counted, and the row steps back. After MOST_FAILURES or LONGEST the row is ended.

So every claim ends, whatever raises in it: a row that cannot be read, a constraint, a disk. The session's events and `/readyz` name
the failure.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from models.database import failure
from models.database.failure import Pause
from models.database.rows import Stale
from models.database.tables import table_of
from models.database.transactions import is_transient, transaction
from models.errors import Busy, NotFound
from models.flow.run.results import give_up_call
from models.flow.run.turns import give_up_run, give_up_turn
from models.session.hints import hint_next
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn

log = logging.getLogger(__name__)

MOST_FAILURES = 6
"""Failures after which a row is ended. The pauses between them are 5, 10, 20, 40 and 80 seconds."""
LONGEST = timedelta(hours=1)
"""Time of nothing but failures after which a row is ended, also if all of them were transient, such as time-outs."""


class LeftForLater(Exception):
    """A task failed at its row, and the failure is counted. The message says what happens to the row, without the error's text."""


class TaskRow(NamedTuple):
    """A row that a task is about to claim, or to take back from a dead worker."""

    table: type[Any]
    """Turn, ToolCall, or a table with the verb `give_up`."""
    id: str
    workspace_id: str
    session_id: str = ""
    """The session of a turn or of a call."""


@contextmanager
def isolated(task: str, subject_id: str, workspace_id: str) -> Iterator[None]:
    """Count a failure at one subject, so that the task continues with the others. The task tries the subject again later.

    Raises those of the database, if the failure cannot be counted. Then the database is away.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the task must continue with the others
        _count(task, subject_id, workspace_id, error)


@contextmanager
def bounded(task: str, row: TaskRow, subject_id: str | None = None) -> Iterator[None]:
    """Count a failure at one row as `isolated` does. The row steps back, and after MOST_FAILURES it is ended.

    `subject_id`: the id under which the failure is counted, if it is not the row's. A row that another transaction has moved, or
    that is gone, is not a failure. Raises LeftForLater after a failure.
    """
    try:
        yield
    except (Stale, NotFound):
        return
    except Exception as error:  # noqa: BLE001 - whatever raises, the row must end
        pause = _count(task, subject_id or row.id, row.workspace_id, error)
        is_over, why = pause.failures >= MOST_FAILURES or pause.lasts >= LONGEST, _reason(pause, error)
        if is_over and _end_row(row, why):
            raise LeftForLater(f"given up: {why}") from None
        _postpone(row, pause.not_before)
        raise LeftForLater(f"left for later: {type(error).__name__}") from None


def _reason(pause: Pause, error: Exception) -> str:
    tries = f"{pause.failures} tries" if pause.failures >= MOST_FAILURES else f"all tries of {LONGEST.total_seconds():.0f} s"
    return f"{tries} failed, the last one with {type(error).__name__}"


def _count(task: str, subject_id: str, workspace_id: str, error: Exception) -> Pause:
    """Count the failure in a transaction of its own, because the task's was rolled back."""
    kind = type(error).__name__  # without the error's text, which may contain what no log may show
    log.error("%s of %s: left for later (%s)", task, subject_id, kind)
    return failure.step_back(task, subject_id, workspace_id, kind, counts=not (is_transient(error) or isinstance(error, Busy)))


def _end_row(row: TaskRow, why: str) -> bool:
    """End the row, or at least its run, as an interrupt would. False if both fail: then it steps back and is tried again."""
    for verb in (_give_up, _give_up_run) if row.session_id else (_give_up,):
        try:
            verb(row, why)
        except NotFound:
            return True
        except Exception as error:  # noqa: BLE001 - the next verb needs less
            log.error("%s: not ended (%s)", row.id, type(error).__name__)
        else:
            return True
    return False


def _give_up(row: TaskRow, why: str) -> None:
    with transaction(row.workspace_id) as db:
        if row.table is Turn:
            give_up_turn(db, row.session_id, row.id, why)
        elif row.table is ToolCall:
            give_up_call(db, row.session_id, row.id, why)
        else:
            row.table.give_up(db, row.id, why)


def _give_up_run(row: TaskRow, why: str) -> None:
    with transaction(row.workspace_id) as db:
        give_up_run(db, row.session_id, why)


def _postpone(row: TaskRow, due_at: datetime) -> None:
    """Have workers leave a queued row alone until `due_at`, and go on with the next. Other rows change in other ways."""
    condition = "AND status = 'queued'" if hasattr(row.table, "status") else ""
    queue = "queue" if row.table is ToolCall else "NULL"
    postpone = f"""
        UPDATE {table_of(row.table).name} SET due_at = %(due)s, hinted_at = NULL WHERE id = %(id)s {condition} RETURNING {queue}
    """  # noqa: S608 - names of our own
    try:
        with transaction(row.workspace_id) as db:
            for (of_call,) in db.rows(postpone, id=row.id, due=due_at):
                if row.session_id:
                    hint_next(db, "turn.run" if row.table is Turn else "tool.run", of_call)
    except Exception as error:  # noqa: BLE001 - the row may refuse this, too: then the next hint comes earlier
        log.error("%s: not postponed (%s)", row.id, type(error).__name__)
