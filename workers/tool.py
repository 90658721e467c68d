"""tool.run: claim with an attempt row, run the tool, record the result, exit."""

import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from assent import ToolError
from models.database.rows import Db
from models.database.trace import going_on
from models.database.transactions import transact
from models.flow.begin import sessions
from models.flow.run.claims import ClaimedCall, ClaimingWorker, queued_call
from models.flow.run.rejudging import UNSEEN, Files, Unresolved
from models.flow.run.results import Outcome, finish_call, late_result, lose_call, put_back_call
from models.operate.failing import TaskRow, bounded
from models.operate.metrics import contents, spans
from models.operate.metrics.durations import TOOLS, measure
from models.pure.json.canonical import is_digest
from models.pure.naming import OURS
from models.pure.text import words
from models.session.locked import Locked
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import text
from models.session.tool_call.row import ToolCall
from models.session.tool_call.stored_result import StoredResult
from models.settings import settings
from models.workspace import toolset
from workers import leases
from workers.celery import app
from workers.keeping import commit_held
from workers.leases import Lease
from workers.outcome import BUSY, FAILURES, LONGEST, LOST, NOT_CLAIMED, Sweep, did, task
from workers.tools import execution, sources
from workers.tools.builtin import git_look, paths
from workers.tools.builtin.preview import shell_start
from workers.tools.kinds import Answers, Tool, ToolContext
from workers.tools.output import OutcomeUnknown
from workers.tools.sandbox import workdir

log = logging.getLogger(__name__)


_LOOKED_UP_AT_ONCE = 5000
"""Folders whose sessions one query looks up."""
_UNSTORED = Outcome(text(words.stopped("it ran to its end, but its result could not be stored")), is_error=True)


@app.task(name="tool.run", throws=FAILURES)
def run(call_id: str, session_id: str, workspace_id: str) -> str:
    """Make one attempt at one call. A late, repeated or wrong message claims nothing. Returns the outcome."""
    outcome = NOT_CLAIMED
    with bounded("tool.run", TaskRow(ToolCall, call_id, workspace_id, session_id)):
        claim = _claim(call_id, session_id, workspace_id)
        outcome = claim if isinstance(claim, str) else f"{claim.call.name}: {_attempt(claim)}"
    return outcome[:LONGEST]


def _attempt(claimed_call: ClaimedCall) -> str:
    """Run a claimed call, and record its end. If the call cannot begin, it is queued again, and the error goes on.

    Returns the outcome.
    """
    call = claimed_call.call
    with leases.hold(call) as lease, going_on(claimed_call.run):
        try:
            ready = _prepare(claimed_call, _context(claimed_call, lease))
        except Exception:
            commit_held(call, lease, put_back_call)
            raise
        if isinstance(ready, Outcome):
            return _finish(call, lease, ready)
        with leases.reporting(call, ready.context.output):
            try:
                outcome = _execute(ready, claimed_call.input.input)
            except OutcomeUnknown as unknown:
                return _lose(call, lease, str(unknown))
            return _finish(call, lease, outcome)


@app.task(name="tool.tidy", base=Sweep)
def tidy() -> str:
    """Remove the files of deleted sessions. Runs on tools workers, which mount the workdirs."""
    count = 0
    for some in workdir.sessions(_LOOKED_UP_AT_ONCE):
        for session_id in sessions.gone(some):
            workdir.remove(session_id)
            count += 1
    return did("removed files of", count)


def list_changed(address: str) -> None:
    """Handle a changed MCP server: list and announce an operator's server; mark a client's listing as stale for the next turn."""
    if not address.startswith(OURS):
        toolset.mark_stale(address)
    elif (tools := sources.mcp_entries(address)) is not None:
        toolset.announce({address.removeprefix(OURS): tools})


sources.listen(list_changed)


def _claim(call_id: str, session_id: str, workspace_id: str) -> ClaimedCall | str:
    """Return the claimed call, or the outcome without one. If the claim needs facts about the session's files, look, and claim
    again."""
    if not leases.ready():
        return BUSY
    storage_id = workdir.storage_id(settings().workdir_root)

    def claim(db: Db, files: Files) -> ClaimedCall | Unresolved | None:
        queued_row = queued_call(db, session_id, call_id)
        return queued_row.claim(_worker_for(queued_row.call, storage_id), files) if queued_row else None

    result = transact(workspace_id, lambda db: claim(db, UNSEEN))
    if isinstance(result, Unresolved):
        files = _look(session_id, result)  # without an open transaction: the files may be on a slow disk
        result = transact(workspace_id, lambda db: claim(db, files))
    if isinstance(result, ClaimedCall):
        return result
    return NOT_CLAIMED  # also if the rules changed while this worker looked: a later hint claims the call


def _worker_for(call: ToolCall, storage_id: str) -> ClaimingWorker:
    """Return what this worker has for a call."""
    return ClaimingWorker(
        name=leases.worker(),
        storage_id=storage_id,
        has_toolset=call.address is None or sources.has(call.address),
        entry=sources.entry_of(call.address, call.tool or call.name),
        task=task(),
    )


def _look(session_id: str, unresolved: Unresolved) -> Files:
    """Look at the session's files for a claim."""
    files, git_line = workdir.session_root(session_id) / "files", unresolved.git_line
    return Files(_resolve_paths(files, unresolved.paths), git_look.may_run_programs(files, git_line) if git_line else None)


def _resolve_paths(files: Path, texts: Iterable[str]) -> dict[str, str | ToolError]:
    """Return the place in the session's files, or the error, for each path."""
    places: dict[str, str | ToolError] = {}
    for path in texts:
        try:
            places[path] = paths.resolve(files, path)
        except ToolError as error:
            places[path] = error
    return places


def _context(claimed_call: ClaimedCall, lease: Lease) -> ToolContext:
    call, question, answers = claimed_call.call, claimed_call.input.question or {}, claimed_call.input.answers
    return ToolContext(
        call_id=call.id,
        session_id=call.session_id,
        workspace_id=call.workspace_id,
        principal=claimed_call.by,
        root=workdir.session_root(call.session_id),
        seconds=settings().tool_seconds,
        attempt=call.attempt,
        answers=Answers(answers, question.get("state")) if answers else None,
        path_targets=claimed_call.places,
        stored_result=partial(StoredResult.read, call.workspace_id, call.session_id),
        cancelled=lease.cancelled,
    )


class _Ready(NamedTuple):
    """A call whose tool can begin."""

    tool: Tool
    context: ToolContext


def _prepare(claimed_call: ClaimedCall, context: ToolContext) -> _Ready | Outcome:
    """Return the tool that can begin, or the result of a call that must not. The input must have the hash that was judged, shown
    and decided.

    Nothing here has an effect, so a call that fails here did not begin.
    """
    call = claimed_call.call
    serves = sources.serves(call.address, call.workspace_id)
    tool = sources.find(call.name, call.address, call.tool, claimed_call.entry) if serves else None
    if tool is None or not is_digest(claimed_call.input.input, call.input_sha256):
        problem = words.changed_input() if tool else words.stopped(f"this worker has no tool {call.name!r}")
        return Outcome(text(problem), is_error=True)
    # A toolset's function may follow the paths by itself, so they are resolved once more right before the call.
    places = {path: place for path, place in context.path_targets.items() if isinstance(place, str)}
    if call.address and _resolve_paths(context.workdir, places) != places:
        return Outcome(text(words.stopped("a path in its input leads elsewhere than when it was judged")), is_error=True)
    context.seconds = tool.time_limit
    return _Ready(tool, context)


def _execute(ready: _Ready, call_input: dict[str, Any]) -> Outcome:
    """Run the tool. Raises OutcomeUnknown alone."""
    name = ready.tool.name
    about = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": ready.context.call_id, "gen_ai.tool.type": "function"}
    schema = ready.tool.input_schema
    with (
        measure(TOOLS, name, "unknown") as watch,
        spans.record("execute_tool", name, {**about, **contents.of_call(call_input, schema)}) as span,
    ):
        try:
            result = execution.execute(ready.tool, ready.context, call_input)
        except OutcomeUnknown:
            raise
        except Exception as error:  # noqa: BLE001 - the tool has ended: its outcome is known, though not its result
            log.error("call %s: its result could not be read (%s)", ready.context.call_id, type(error).__name__)
            watch.labels, span.error = (name, "error"), type(error).__name__
            return _UNSTORED
        span.attributes |= contents.of_result(result.content, call_input, schema)
        span.error = "tool_error" if result.is_error else ""
        watch.labels = (name, "error" if result.is_error else "question" if result.question else "done")
    start = shell_start(ready.context.root) if ready.tool.workdir else None
    question = {"requests": result.question.requests, "state": result.question.state} if result.question else None
    return Outcome(result.content, result.is_error, result.structured, question, result.whole, start)


def _finish(call: ToolCall, lease: Lease, outcome: Outcome) -> str:
    """Store the outcome of the tool. Returns the outcome of the task."""
    words = LOST

    def finish(locked: Locked, row: ToolCall) -> None:
        nonlocal words
        finish_call(locked, row, outcome)
        words = f"{row.status}, with an error" if row.is_error else row.status

    def report_late(locked: Locked) -> None:
        late_result(locked, call, outcome)

    try:
        commit_held(call, lease, finish, CallInput.about(call.id), late=report_late)
    except Exception as error:
        # The effect has happened, so at least the call's end is stored.
        log.error("call %s: its result could not be stored (%s)", call.id, type(error).__name__)
        if outcome is _UNSTORED:
            raise
        return _finish(call, lease, _UNSTORED)
    return words


def _lose(call: ToolCall, lease: Lease, why: str) -> str:
    """Record that nobody knows how the call ended. Returns the outcome of the task."""
    words = LOST

    def lose(locked: Locked, row: ToolCall) -> None:
        nonlocal words
        lose_call(locked, row, why)
        words = f"{row.status}: nobody knows how it ended"

    commit_held(call, lease, lose)
    return words
