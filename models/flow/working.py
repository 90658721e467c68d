"""A tool call's claim, result and loss."""

from typing import Any

import sqlalchemy as sa

from models.approval import Approval
from models.db import Db
from models.flow.following import carry_on
from models.flow.granting import ask_instead, still_allowed
from models.principal import Principal, system
from models.pure import words
from models.pure.canonical import digest, is_digest
from models.ruling import Asking
from models.session import Session
from models.settings import settings
from models.tool_call import ToolCall, text


def claim_call(db: Db, session: Session, call_id: str, worker: str, storage_id: str) -> ToolCall | None:
    """Take a queued call, its attempt's row written. None if it is not to be had, or if its files live on another storage.

    What is about to run must hash to what was judged and, if it was asked, to what was decided; otherwise it is refused for good.
    """
    call = db.get(ToolCall, call_id)
    if call is None or call.session_id != session.id or call.status != "queued":
        return None
    session.storage_id = session.storage_id or storage_id
    if session.storage_id != storage_id:
        call.held_back = f"its files are on storage {session.storage_id}, and worker {worker} has {storage_id}"
        return None
    if not _is_what_was_decided(db, call):
        session.note(_actor(session), "tool_call.input_changed", call.id, input_sha256=call.input_sha256)
        call.settle(db, session, "refused", text(words.changed_input()), is_error=True)
        carry_on(db, session)
        return None
    if not _may_begin(db, session, call):
        carry_on(db, session)
        return None
    call.claim(db, session, worker)
    session.note(
        _actor(session),
        "tool_call.started",
        call.id,
        attempt=call.attempt,
        worker=worker,
        input_sha256=call.input_sha256,
    )
    return call


def finish_call(db: Db, session: Session, call: ToolCall, content: list[dict[str, Any]], *, is_error: bool) -> None:
    """The call's result. Raises Stale if the call was taken from this worker: then nothing is kept."""
    session.note(
        _actor(session),
        "tool_call.finished",
        call.id,
        attempt=call.attempt,
        is_error=is_error,
        result_sha256=digest(content),
    )
    call.settle(db, session, "done", content, is_error=is_error)
    carry_on(db, session)


def lose_call(db: Db, session: Session, call: ToolCall) -> None:
    """Nobody can say how the attempt ended: an idempotent call goes again under its key, any other is put to a person."""
    session.note(_actor(session), "tool_call.lost", call.id, attempt=call.attempt, worker=call.worker)
    if call.cancel_requested_at is not None:
        call.settle(db, session, "cancelled", text(words.outcome_unknown()), is_error=True)
    elif not call.idempotent:
        _ask_what_became(db, session, call)
    elif call.attempt < settings().crash_attempts:
        call.release(db, session)
    else:
        call.settle(db, session, "done", text(words.lost(call.attempt)), is_error=True)
    carry_on(db, session)


def rescue_call(db: Db, session: Session, call_id: str) -> None:
    """Lose a call whose worker stopped renewing its lease."""
    call = db.get(ToolCall, call_id)
    if call is not None and call.status == "running" and call.lease_until is not None and call.lease_until <= session.now:
        lose_call(db, session, call)


def _may_begin(db: Db, session: Session, call: ToolCall) -> bool:
    """Whether no rule came that denies the call, and the grants behind it stand. If not, it is settled, or put to a person."""
    verdict = still_allowed(db, session, call)
    if verdict.effect == "deny":
        session.note(_actor(session), "tool_call.denied", call.id, rule=verdict.rule, input_sha256=call.input_sha256)
        if call.attempt:
            call.settle(db, session, "cancelled", text(words.outcome_unknown()), is_error=True)
        else:
            call.settle(db, session, "refused", text(words.denied_by_policy(verdict.rule)), is_error=True)
        return False
    if call.grants and verdict.effect == "ask":
        ask_instead(db, session, call)
        return False
    return True


def _ask_what_became(db: Db, session: Session, call: ToolCall) -> None:
    call.become_unknown(db, session)
    prompt = f"Attempt {call.attempt} of this call was started by {call.worker} and never reported its end. What became of it?"
    approval = Approval.ask(session, call, Asking(prompt, settings().approval_seconds), kind="unknown_outcome")
    approval.put(db, session, _actor(session))


def _is_what_was_decided(db: Db, call: ToolCall) -> bool:
    """Shown = decided = run: one hash, and where it was asked, an allowed approval that carries it."""
    if not is_digest(call.input, call.input_sha256):
        return False
    if call.permission != "ask":
        return True
    where = (Approval.tool_call_id == call.id, Approval.kind == "tool_call", Approval.status == "allowed")
    runs = sa.func.coalesce(Approval.decided_sha256, Approval.input_sha256)
    return call.input_sha256 in set(db.scalars(sa.select(runs).where(*where)))


def _actor(session: Session) -> Principal:
    return system("tool.run", session.workspace_id)
