"""tool.run: claim with an attempt row, carry out the effect, record the result, exit."""

import logging

from models import due, flow
from models.db import Db, transaction
from models.errors import NotFound
from models.pure import words
from models.pure.canonical import is_digest
from models.session import Session
from models.settings import settings
from models.tool_call import ToolCall, text
from workers import leases
from workers.celery import app
from workers.keeping import keep
from workers.leases import Lease
from workers.tools import registry, workdir
from workers.tools.registry import OutcomeUnknown, ToolContext, ToolResult

log = logging.getLogger(__name__)


_UNKEPT = ToolResult(text(words.stopped("it ran to its end, but its result could not be stored")), is_error=True)


@app.task(name="tool.run")
def run(call_id: str, session_id: str, workspace_id: str) -> None:
    """One attempt at one call. A message that is late, doubled or wrong finds nothing to claim."""
    call = _claim(call_id, session_id, workspace_id)
    if call is None:
        return
    with leases.hold(call.id, call.fence) as lease:
        try:
            result = _execute(call, lease)
        except OutcomeUnknown:
            _lose(call, lease)
        else:
            _finish(call, lease, result)


@app.task(name="tool.tidy")
def tidy() -> None:
    """Remove the files of sessions that were deleted. A sweep, but one for who has the files."""
    for session_id in due.gone(workdir.sessions(limit=500)):
        workdir.remove(session_id)


def _claim(call_id: str, session_id: str, workspace_id: str) -> ToolCall | None:
    if not leases.ready():
        return None
    storage_id = workdir.storage_id(settings().workdir_root)
    with transaction(workspace_id) as db:
        try:
            session = Session.lock(db, session_id)
        except NotFound:
            return None
        return flow.claim_call(db, session, call_id, leases.worker(), storage_id)


def _execute(call: ToolCall, lease: Lease) -> ToolResult:
    """The effect. What is passed must hash to what was claimed, which is what was judged, shown and decided."""
    tool = registry.look_up(call.name)
    if tool is None or not is_digest(call.input, call.input_sha256):
        why = words.changed_input() if tool else words.stopped(f"this worker has no tool {call.name!r}")
        return ToolResult(text(why), is_error=True)
    context = ToolContext(
        call_id=call.id,
        session_id=call.session_id,
        root=workdir.session_root(call.session_id),
        seconds=tool.time_limit,
        cancelled=lease.cancelled,
    )
    return registry.execute(tool, context, call.input)


def _finish(call: ToolCall, lease: Lease, result: ToolResult) -> None:
    def verb(db: Db, session: Session) -> None:
        flow.finish_call(db, session, ToolCall.held(db, call.id, call.fence), result.content, is_error=result.is_error)

    try:
        keep(call.workspace_id, call.session_id, lease, verb)
    except Exception as error:
        # The effect has happened: whatever its result did to us, that it ended is kept.
        log.error("call %s: its result could not be kept (%s)", call.id, type(error).__name__)
        if result is _UNKEPT:
            raise
        _finish(call, lease, _UNKEPT)


def _lose(call: ToolCall, lease: Lease) -> None:
    def verb(db: Db, session: Session) -> None:
        flow.lose_call(db, session, ToolCall.held(db, call.id, call.fence))

    keep(call.workspace_id, call.session_id, lease, verb)
