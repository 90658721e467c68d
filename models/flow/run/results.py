"""The end of a tool call's attempt: a result, a question for people, or a lost worker."""

from dataclasses import dataclass
from typing import Any

from models.audit.principal import Principal, system
from models.database.rows import Db
from models.database.transactions import transaction
from models.flow.carry_on import halts
from models.flow.carry_on.next_step import carry_on
from models.flow.judge.grants import asking_of, session_policies
from models.flow.lock import lock_alone
from models.policy.asking import Asking
from models.pure.json.canonical import digest
from models.pure.text import words
from models.pure.times import rfc3339
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.echoes import NO_ECHOES
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import text
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


def finish_call(db: Db, session: Session, call: ToolCall, outcome: Outcome) -> None:
    """Store a tool's outcome, and take the next step."""
    if outcome.question and call.cancel_requested_at is None:
        _ask_back(db, session, call, outcome.question)
        carry_on(db, session)
        return
    if outcome.question:
        outcome = Outcome(text(words.cancelled_asking()), is_error=True)
    call.settle(db, session, "done", outcome.content, is_error=outcome.is_error, structured=outcome.structured)
    session.note(
        _actor(session),
        "tool_call.finished",
        call.id,
        attempt=call.attempt,
        is_error=outcome.is_error,
        result_sha256=digest(outcome.content),
    )
    if outcome.whole is not None:
        StoredResult.keep(db, session, call, outcome.whole)
    carry_on(db, session)


def late_result(db: Db, session: Session, call_id: str, attempt: int, outcome: Outcome) -> None:
    """Store the outcome that a worker reports after it lost its lease, for the record. It changes nothing else."""
    if Attempt.was_reported(db, call_id, attempt):
        return  # the same worker's commit had succeeded
    kept = {"content": outcome.content, "is_error": outcome.is_error, "at": rfc3339(session.now)}
    Attempt.late(db, call_id, attempt, kept)
    session.note(
        _actor(session),
        "tool_call.reported_late",
        call_id,
        attempt=attempt,
        is_error=outcome.is_error,
        result_sha256=digest(outcome.content),
    )


def lose_call(db: Db, session: Session, call: ToolCall, why: str = "its worker died, or was cut off") -> None:
    """Handle a call whose end nobody knows. An idempotent call runs again under the same key; a person settles any other call.

    `why` is shown to the person.
    """
    session.note(_actor(session), "tool_call.lost", call.id, attempt=call.attempt, worker=call.worker)
    if call.cancel_requested_at is not None:
        call.settle(db, session, "cancelled", text(words.outcome_unknown()), is_error=True)
    elif not call.idempotent:
        _ask_what_became(db, session, call, why)
    elif call.attempt < settings().crash_attempts:
        call.release(db, session)
    else:
        call.settle(db, session, "done", text(words.lost(call.attempt)), is_error=True)
    carry_on(db, session)


def rescue_call(db: Db, session: Session, call_id: str) -> None:
    """Handle a call whose worker no longer renews its lease, as `lose_call` does."""
    call = db.get(ToolCall, call_id)
    if call is not None and call.is_lapsed(session.now):
        lose_call(db, session, call)


def put_back_call(db: Db, session: Session, call: ToolCall) -> None:
    """Queue a claimed call again that did not begin. A tool that is not idempotent may run again, because nothing happened."""
    session.note(_actor(session), "tool_call.not_begun", call.id, attempt=call.attempt, worker=call.worker)
    if call.cancel_requested_at is None:
        call.put_back(db, session)
        return
    call.settle(db, session, "cancelled", text(words.cancelled()), is_error=True)
    carry_on(db, session)


def give_up_call(db: Db, session_id: str, call_id: str, why: str) -> None:
    """Give an error result to a call that no worker can claim, or that cannot be taken back. Does not read the call's input."""
    session = lock_alone(db, session_id)
    call = db.get(ToolCall, call_id)
    if call is None or call.session_id != session.id or not call.is_unheld(session.now):
        return
    session.note(_actor(session), "tool_call.given_up", call.id, attempt=call.attempt)
    if call.status == "queued":
        call.settle(db, session, "refused", text(words.call_given_up(why)), is_error=True, echoes=NO_ECHOES)
    else:
        call.settle(db, session, "done", text(words.outcome_unknown()), is_error=True, echoes=NO_ECHOES)
    carry_on(db, session)


def expire_calls(workspace_id: str, session_id: str) -> int:
    """Expire the calls of one session whose client sent no result in time. Returns how many; 0 if the session is locked."""
    with transaction(workspace_id) as db:
        session = Session.try_lock(db, session_id)
        if session is None:
            return 0
        silent = halts.silent(db, session, ToolCall.of_turn(db, session))
        for call in silent:
            session.note(system("sweep.expire_calls", workspace_id), "tool_call.expired", call.id)
            call.settle(db, session, "expired", text(words.client_silent(call.answer_seconds or 0)), is_error=True)
        if silent:
            carry_on(db, session)
        return len(silent)


def _ask_back(db: Db, session: Session, call: ToolCall, question: dict[str, Any]) -> None:
    session.note(_actor(session), "tool_call.asked_back", call.id, attempt=call.attempt)
    if session.on_ask == "deny":
        call.settle(db, session, "cancelled", text(words.cannot_answer()), is_error=True)
        return
    call.park(db, session, question)
    approval = Approval.ask(
        db,
        session,
        call,
        _asking(db, session, call, words.asks_back(call.tool or call.name, call.server)),
        kind="question",
        questions=question["requests"],
    )
    approval.put(db, session, _actor(session))


def _ask_what_became(db: Db, session: Session, call: ToolCall, why: str) -> None:
    attempt = Attempt.summary(db, call.id, call.attempt)
    call.become_unknown(db, session)
    if session.on_ask == "deny":
        call.settle(db, session, "done", text(words.outcome_unknown()), is_error=True)
        return
    prompt = f"Attempt {call.attempt} of this call, by {call.worker}, never reported its end: {why}. What became of it?"
    asking = _asking(db, session, call, prompt)
    approval = Approval.ask(db, session, call, asking, kind="unknown_outcome", attempt_told=attempt)
    approval.put(db, session, _actor(session))


def _asking(db: Db, session: Session, call: ToolCall, prompt: str) -> Asking:
    """Return another question about a call, for the same people, with the schema that marks its secret arguments."""
    schema = asking_of(call, CallInput.of(db, call.id)).input_schema
    quorum = session_policies(db, session).quorum(call.name).as_json
    return Asking(prompt, settings().approval_seconds, input_schema=schema, quorum=quorum)


def _actor(session: Session) -> Principal:
    return system("tool.run", session.workspace_id)
