"""The end of a tool call's attempt: a result, a question for people, or a lost worker."""

from dataclasses import dataclass
from typing import Any

from models.audit.principal import system
from models.database.rows import Db
from models.database.transactions import transaction
from models.flow.carry_on import halts
from models.flow.carry_on.next_step import carry_on, may_have_begun, one_step
from models.flow.judge.grants import asking_of, session_policies
from models.flow.run.shared_files import release_writers
from models.policy.asking import Asking
from models.pure.json.canonical import digest
from models.pure.text import words
from models.pure.times import rfc3339
from models.session.approval.row import Approval
from models.session.locked import Locked, lock_alone, try_lock
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import Result, text
from models.session.tool_call.row import ToolCall
from models.session.tool_call.stored_result import StoredResult
from models.settings import settings


@dataclass(frozen=True)
class Outcome:
    """The outcome of a tool."""

    content: list[dict[str, Any]]
    is_error: bool
    structured: dict[str, Any] | None = None
    question: dict[str, Any] | None = None
    """Set if the tool asks people a question before it goes on."""
    whole: bytes | None = None
    """The whole text, if `content` holds only its beginning and end."""
    shell_start: dict[str, Any] | None = None
    """`Session.shell_start`, of a call with the session's files."""


def finish_call(locked: Locked, call: ToolCall, outcome: Outcome) -> None:
    """Store a tool's outcome, and take the next step."""
    locked = locked.at(call)
    if call.workdir:
        locked.session.shell_start = outcome.shell_start
    if outcome.question and call.cancel_requested_at is None:
        _ask_back(locked, call, outcome.question)
        carry_on(locked)
        return
    if outcome.question:
        outcome = Outcome(text(words.cancelled_asking()), is_error=True)
    call.settle(locked, "done", Result(outcome.content, is_error=outcome.is_error, structured=outcome.structured))
    _note_end(locked, call, "tool_call.finished", outcome)
    if outcome.whole is not None:
        StoredResult.keep(locked, call, outcome.whole)
    release_writers(locked, call)
    carry_on(locked)


def late_result(locked: Locked, call: ToolCall, outcome: Outcome) -> None:
    """Store the outcome that a worker reports after it lost its lease, for the record. It changes nothing else.

    `call` is the worker's own row: its attempt is the one that ended late.
    """
    if Attempt.was_reported(locked.db, call):
        return  # the same worker's commit had succeeded
    kept = {"content": outcome.content, "is_error": outcome.is_error, "at": rfc3339(locked.now)}
    Attempt.late(locked.db, call, kept)
    _note_end(locked, call, "tool_call.reported_late", outcome)


def lose_call(locked: Locked, call: ToolCall, why: str = "its worker died, or was cut off") -> None:
    """Handle a call whose end nobody knows. An idempotent call runs again under the same key; a person settles any other call.

    `why` is shown to the person.
    """
    locked = locked.at(call)
    call.note(locked, "tool_call.lost", attempt=call.attempt, worker=call.worker)
    if call.cancel_requested_at is not None:
        call.settle(locked, "cancelled", Result.error(words.outcome_unknown()))
    elif not call.idempotent:
        began = f"Attempt {call.attempt} of this call, by {call.worker}, never reported its end: {why}."
        _ask_what_became(locked, call, began)
    elif (losses := Attempt.losses(locked.db, call) + 1) < settings().crash_attempts:
        call.release(locked)
    else:
        call.settle(locked, "done", Result.error(words.lost(losses)))
    carry_on(locked)


def doubt_call(locked: Locked, call: ToolCall, why: str) -> None:
    """Have a person settle a call that is not idempotent, and that may have run without a trace in the rows.

    `why` is shown to the person.
    """
    locked = locked.at(call)
    call.note(locked, "tool_call.doubted", attempt=call.attempt, status=call.status)
    if call.cancel_requested_at is not None:
        call.settle(locked, "cancelled", Result.error(words.outcome_unknown()))
    else:
        _ask_what_became(locked, call, why)
    carry_on(locked)


def rescue_call(locked: Locked, call_id: str) -> None:
    """Handle a call whose worker no longer renews its lease, as `lose_call` does."""
    call = locked.db.get(ToolCall, call_id)
    if call is not None and call.is_lapsed(locked.now):
        lose_call(locked, call)


def put_back_call(locked: Locked, call: ToolCall) -> None:
    """Queue a claimed call again that did not begin. A tool that is not idempotent may run again, because nothing happened."""
    locked = locked.at(call)
    call.note(locked, "tool_call.not_begun", attempt=call.attempt, worker=call.worker)
    call.put_back(locked)
    if call.cancel_requested_at is None:
        return
    say = words.outcome_unknown if may_have_begun(locked.db, call) else words.cancelled
    call.settle(locked, "cancelled", Result.error(say()))
    carry_on(locked)


def give_up_call(db: Db, session_id: str, call_id: str, why: str) -> None:
    """Give an error result to a call that no worker can claim, or that cannot be taken back. Does not read the call's input."""
    locked = lock_alone(db, session_id, system(ToolCall.TASK, db.workspace_id))
    call = db.get(ToolCall, call_id)
    if call is None or call.session_id != locked.session.id or not call.is_unheld(locked.now):
        return
    locked = locked.at(call)
    call.note(locked, "tool_call.given_up", attempt=call.attempt)
    if call.status == "queued" and not may_have_begun(locked.db, call):
        call.settle(locked, "refused", Result.error(words.call_given_up(why), is_ours=True))
    else:
        call.settle(locked, "done", Result.error(words.outcome_unknown(), is_ours=True))
    carry_on(locked)


def expire_calls(workspace_id: str, session_id: str) -> int:
    """Expire the calls of one session whose client sent no result in time. Returns how many; 0 if the session is locked."""
    with transaction(workspace_id) as db:
        locked = try_lock(db, session_id, system("sweep.expire_calls", workspace_id))
        if locked is None:
            return 0
        silent = halts.silent(locked, [call for each in locked.each for call in ToolCall.of_turn(each)])
        with one_step(locked):
            for call in silent:
                call.note(locked, "tool_call.expired")
                call.settle(locked.at(call), "expired", Result.error(words.client_silent(call.answer_seconds or 0)))
                carry_on(locked.at(call))
        return len(silent)


def _note_end(locked: Locked, call: ToolCall, act: str, outcome: Outcome) -> None:
    call.note(locked, act, attempt=call.attempt, is_error=outcome.is_error, result_sha256=digest(outcome.content))


def _ask_back(locked: Locked, call: ToolCall, question: dict[str, Any]) -> None:
    call.note(locked, "tool_call.asked_back", attempt=call.attempt)
    if locked.session.on_ask == "deny":
        call.settle(locked, "cancelled", Result.error(words.cannot_answer()))
        return
    call.park(locked, question)
    approval = Approval.ask(
        locked,
        call,
        _asking(locked, call, words.asks_back(call.tool or call.name, call.server)),
        kind="question",
        questions=question["requests"],
    )
    approval.put(locked)


def _ask_what_became(locked: Locked, call: ToolCall, why: str) -> None:
    attempt = Attempt.summary(locked.db, call) if call.status == "running" else None
    call.become_unknown(locked)
    if locked.session.on_ask == "deny":
        call.settle(locked, "done", Result.error(words.outcome_unknown()))
        return
    asking = _asking(locked, call, f"{why} What became of it?")
    approval = Approval.ask(locked, call, asking, kind="unknown_outcome", attempt_told=attempt)
    approval.put(locked)


def _asking(locked: Locked, call: ToolCall, prompt: str) -> Asking:
    """Return another question about a call, for the same people, with the schema that marks its secret arguments."""
    schema = asking_of(call, CallInput.of(locked.db, call)).input_schema
    quorum = session_policies(locked).quorum(call.name).as_json
    return Asking(prompt, settings().approval_seconds, input_schema=schema, quorum=quorum)
