"""The lock of a session, with the rows that nearly every verb under it reads."""

from typing import Any

from models.audit.principal import Principal
from models.database.exchange import Statement
from models.database.query import Query, select
from models.database.rows import Db
from models.errors import NotFound
from models.session.locked import Changes, Locked
from models.session.row import Session
from models.session.thread.row import PRESENT_TURNS, Thread
from models.session.tool_call.row import ToolCall
from models.workspace.row import POLICIES, as_policies

_CALLS_BESIDE = """
    WHERE session_id = %(session)s AND turn_id = (SELECT turn_id FROM tool_call WHERE id = %(call)s) ORDER BY position
"""
_CALLS = f"WHERE session_id = %(session)s AND turn_id = {PRESENT_TURNS} ORDER BY position"


def lock(db: Db, session_id: str, actor: Principal) -> Locked:
    """Return the session, locked until the transaction ends. Raises NotFound.

    The same round trip reads the time, the workspace's policies, the threads, and the calls of their present turns, as they are
    under the lock.
    """
    return lock_with_calls(db, session_id, actor)[0]


def lock_with_calls(
    db: Db, session_id: str, actor: Principal, *queries: Query[Any] | Statement, of: str | None = None
) -> tuple[Locked, list[list[Any]]]:
    """Return the session, as `lock` does, and the rows of each query, read in the same round trip under the lock.

    `of`: the id of a call. Then only the calls of its turn are read, because a session may have many threads. Raises NotFound.
    """
    of_session = select(ToolCall, _CALLS, session=session_id)
    about = select(ToolCall, _CALLS_BESIDE, session=session_id, call=of) if of else of_session
    locked, (calls, *rows) = lock_and_read(db, session_id, actor, about, *queries)
    for thread in locked.threads:
        of_turn = [call for call in calls if call.turn_id == thread.turn_id]
        if of_turn or not of:
            locked.changes.calls[thread.id] = of_turn
    return locked, rows


def lock_and_read(db: Db, session_id: str, actor: Principal, *queries: Query[Any] | Statement) -> tuple[Locked, list[list[Any]]]:
    """Return the same for verbs that need no calls: `ToolCall.of_turn` then reads them by itself. Raises NotFound."""
    sessions, threads, policies, *rows = db.read(Session.locking(session_id), Thread.open_of(session_id), POLICIES, *queries)
    if not sessions:
        raise NotFound("session", session_id)
    [(*_, watched, now)] = policies
    return Locked(db, sessions[0], actor, now, threads, watched, Changes(policies=as_policies(policies))), rows
