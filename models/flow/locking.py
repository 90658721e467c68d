"""A session's lock, with what nearly every verb under it looks at."""

from models.db import Db
from models.errors import NotFound
from models.pipeline import ask
from models.rows import loaded, selected
from models.session import Session, locking
from models.tool_call import ToolCall
from models.turn import Turn
from models.workspace import POLICIES, as_policies

_TURN = "FROM turn WHERE id = (SELECT turn_id FROM session WHERE id = %(id)s)"
_CALLS = """
    FROM tool_call WHERE session_id = %(id)s AND turn_id = (SELECT turn_id FROM session WHERE id = %(id)s) ORDER BY position
"""


def lock(db: Db, session_id: str) -> Session:
    """The session, locked until the transaction ends, and all in one round trip: its turn, that turn's calls, and the policies of
    its workspace, as they are under the lock. Raises NotFound."""
    locked, turns, calls, policies = ask(
        db,
        locking(session_id),
        selected(Turn, _TURN, id=session_id),
        selected(ToolCall, _CALLS, id=session_id),
        POLICIES,
    )
    session = Session.locked(db, locked)
    if session is None:
        raise NotFound("session", session_id)
    session.turn = next(iter(loaded(db, Turn, turns)), None)
    session.calls = loaded(db, ToolCall, calls)
    session.policies = as_policies(policies)
    return session
