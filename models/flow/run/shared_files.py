"""The files of a session, which its threads share: two calls of different threads never write them at the same time.

So the second call is judged, and works, on what the first one left. Commands of the shell are not covered.
"""

from datetime import timedelta

from models.session.locked import Locked
from models.session.thread.row import PRESENT_TURNS
from models.session.tool_call.row import ToolCall

AGAIN_SECONDS = 2
"""Pause of a call while another thread writes, unless that one ends earlier."""


def awaits_writer(locked: Locked, call: ToolCall) -> bool:
    """True if a call would write while another thread does. The call is then due later, or when the other one has ended."""
    if not _writes(call) or not any(other.status == "running" for other in _of_others(locked)):
        return False
    call.postpone(locked.now + timedelta(seconds=AGAIN_SECONDS))
    return True


def release_writers(locked: Locked, call: ToolCall) -> None:
    """Have the calls of other threads that waited for the end of this call be due now."""
    if not _writes(call):
        return
    for other in _of_others(locked):
        if other.status == "queued" and other.due_at > locked.now:
            other.due_at = other.hinted_at = locked.now
            other.hint_workers(locked.at(other))


def _of_others(locked: Locked) -> list[ToolCall]:
    """Return the calls of other threads that write files, or wait to."""
    if len(locked.threads) == 1:
        return []
    return locked.db.find(ToolCall, _WRITERS, session=locked.session.id, thread=locked.thread.id)


_WRITERS = f"""
    WHERE session_id = %(session)s AND turn_id = {PRESENT_TURNS} AND thread_id <> %(thread)s AND kind = 'builtin'
    AND name IN ('write', 'edit') AND status IN ('queued', 'running')
"""


def _writes(call: ToolCall) -> bool:
    return call.kind == "builtin" and call.name in {"write", "edit"}
