"""Decisions and deadlines. Default is no: nothing here releases a call but a pending approval's timely allow."""

from models.approval import Approval, DeadlinePassed, Decision
from models.db import Db, transaction
from models.errors import Conflict, Invalid
from models.flow.following import carry_on, stop
from models.principal import Principal, system
from models.pure import words
from models.session import Session
from models.tool_call import ToolCall, text


def decide(db: Db, session: Session, principal: Principal, approval: Approval, decision: Decision) -> str:
    """One decision per approval: the first wins. Returns the id of the `user.tool_confirmation` that it is stored as.

    The same decision again changes nothing and gets the same id. Raises Conflict for another one, or for a hash that is not
    what would run; DeadlinePassed when it is late; Invalid for an answer that does not fit the question.
    """
    if approval.status != "pending":
        return _repeated(approval, decision)
    if approval.expires_at <= session.now:
        raise DeadlinePassed(approval)
    _check(approval, decision)
    call = db.get_one(ToolCall, approval.tool_call_id)
    if approval.kind == "unknown_outcome":
        event_id = _settle_unknown(db, session, principal, approval, call, decision)
    else:
        event_id = _allow_or_deny(db, session, principal, approval, call, decision)
    if decision.interrupt:
        stop(db, session, principal)
    else:
        carry_on(db, session)
    return event_id


def expire_due(workspace_id: str, session_id: str, limit: int = 100) -> int:
    """Expire what is overdue in one session, in a transaction of its own. Returns how many; 0 if somebody else works on it."""
    with transaction(workspace_id) as db:
        session = Session.try_lock(db, session_id)
        if session is None:
            return 0
        due = [a for a in Approval.pending(db, session_id) if a.expires_at <= session.now][:limit]
        for approval in due:
            _expire(db, session, approval)
        if due:
            carry_on(db, session)
        return len(due)


def _repeated(approval: Approval, decision: Decision) -> str:
    if approval.decision == decision.said and approval.event_id and approval.status not in {"expired", "cancelled"}:
        return approval.event_id
    winner = {"status": approval.status, "decision": approval.decision, "decided_by": approval.decided_by}
    raise Conflict(f"Approval {approval.id} is already {approval.status}, by {approval.decided_by}.", winner)


def _check(approval: Approval, decision: Decision) -> None:
    if decision.expected_input_sha256 not in {None, approval.input_sha256}:
        raise Conflict(
            f"expected_input_sha256 is not the hash of what would run, which is {approval.input_sha256}. Nothing was decided.",
            {"input_sha256": approval.input_sha256},
        )
    if approval.kind == "unknown_outcome":
        if decision.outcome is None and decision.result != "deny":
            raise Invalid(
                "result",
                "this call began and its outcome is unknown: decide its approval with outcome rerun, happened or give_up.",
            )
        if decision.outcome == "happened" and not decision.content:
            raise Invalid("result", "outcome happened needs the result, as text or as content blocks.")
    elif decision.result is None:
        raise Invalid("result", "should be allow or deny.")


def _allow_or_deny(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    if decision.result == "allow":
        event_id = approval.close(db, session, principal, "allowed", decision)
        call.release(db, session)
        return event_id
    event_id = approval.close(db, session, principal, "denied", decision)
    say = words.ended_by_person if decision.interrupt else words.denied
    call.settle(db, session, "denied", text(say(decision.deny_message)), is_error=True)
    return event_id


def _settle_unknown(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    event_id = approval.close(db, session, principal, "answered", decision)
    if decision.outcome == "rerun":
        call.release(db, session)
    elif decision.outcome == "happened":
        call.settle(db, session, "done", list(decision.content), is_error=False)
    else:
        call.settle(db, session, "done", text(words.given_up(decision.deny_message)), is_error=True)
    return event_id


def _expire(db: Db, session: Session, approval: Approval) -> None:
    seconds = round((approval.expires_at - approval.created_at).total_seconds(), 3)
    call = db.get_one(ToolCall, approval.tool_call_id)
    by = system("sweep.expire_approvals", session.workspace_id)
    approval.close(db, session, by, "expired", Decision("deny", deny_message=words.expired_note(seconds)))
    if approval.kind == "unknown_outcome":
        call.settle(db, session, "done", text(words.outcome_unknown()), is_error=True)
    else:
        call.settle(db, session, "expired", text(words.expired(seconds)), is_error=True)
