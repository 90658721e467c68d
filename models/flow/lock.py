"""The lock of a session, with the rows that nearly every verb under it reads."""

from typing import Any

from models.audit.principal import Principal
from models.database.exchange import Statement
from models.database.query import Query, select
from models.database.rows import Db
from models.errors import NotFound
from models.session.locked import Locked
from models.session.row import Session
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.workspace.row import POLICIES, as_policies

_TURN = "WHERE id = (SELECT turn_id FROM session WHERE id = %(id)s)"
_CALLS = """
    WHERE session_id = %(id)s AND turn_id = (SELECT turn_id FROM session WHERE id = %(id)s) ORDER BY position
"""


def lock(db: Db, session_id: str, actor: Principal) -> Locked:
    """Return the session, locked until the transaction ends. Raises NotFound.

    The same round trip reads the time, the workspace's policies, the turn, and the turn's calls, as they are under the lock. Then
    `Db.get` finds the turn without another read.
    """
    return lock_and_read(db, session_id, actor)[0]


def lock_and_read(db: Db, session_id: str, actor: Principal, *queries: Query[Any] | Statement) -> tuple[Locked, list[list[Any]]]:
    """Return the session, as `lock` does, and the rows of each query, read in the same round trip under the lock.

    Raises NotFound.
    """
    sessions, policies, _, calls, *rows = db.read(
        Session.locking(session_id),
        POLICIES,
        select(Turn, _TURN, id=session_id),
        select(ToolCall, _CALLS, id=session_id),
        *queries,
    )
    if not sessions:
        raise NotFound("session", session_id)
    [(*_, watched, now)] = policies
    return Locked(db, sessions[0], actor, now, watched, calls, as_policies(policies)), rows
