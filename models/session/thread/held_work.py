"""What a halt holds: threads that would go on by themselves, but no worker may take their next turn or call."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.database.rows import Db

_HELD = """
    SELECT session_id, id, status = 'stopping'
        OR EXISTS (SELECT FROM turn WHERE turn.id = thread.turn_id AND turn.status = 'running')
        OR EXISTS (SELECT FROM tool_call WHERE tool_call.turn_id = thread.turn_id AND tool_call.status = 'running')
    FROM thread WHERE session_id = ANY(%(sessions)s) AND status IN ('running', 'rescheduling', 'stopping')
        AND EXISTS (SELECT FROM halt WHERE workspace_id = current_setting('assent.workspace') AND ended_at IS NULL)
"""
"""The threads at work, if the workspace is halted, and whether something of each still runs."""


@dataclass(frozen=True)
class HeldWork:
    """Which of some sessions a halt holds, and which of their threads."""

    threads: frozenset[tuple[str, str]]
    """By the ids of session and thread."""
    sessions: frozenset[str]
    """Ids of the sessions of which nothing runs any more."""

    @classmethod
    def of(cls, db: Db, session_ids: Sequence[str]) -> "HeldWork":
        """Return what a halt holds of these sessions."""
        rows = db.rows(_HELD, sessions=list(session_ids)) if session_ids else []
        busy_ids = {session_id for session_id, _, is_busy in rows if is_busy}
        threads = frozenset((session_id, thread_id) for session_id, thread_id, is_busy in rows if not is_busy)
        return cls(threads, frozenset(session_id for session_id, _ in threads) - busy_ids)
