"""The sweep that takes back rows of dead workers."""

from collections.abc import Callable
from typing import Any

from models.audit.principal import system
from models.database import clock
from models.database.leased import Leased
from models.database.rows import Db
from models.database.transactions import transaction
from models.flow.run.results import rescue_call
from models.flow.run.turns import rescue_turn
from models.notices.notification import Notification
from models.operate import due
from models.operate.failing import LeftForLater, TaskRow, bounded
from models.outbox.delivery import Delivery
from models.session.locked import Locked, try_lock
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from workers.celery import app
from workers.outcome import Sweep, did, tell_lost


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
