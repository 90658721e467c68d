"""Deadlines: the effect of `on_timeout` when nobody decides in time, and the reminder before. The default is no."""

from collections.abc import Callable
from typing import TypeVar

from models.audit.principal import system
from models.database.rows import Db
from models.database.transactions import transact, transaction
from models.errors import Conflict, Refusal
from models.flow.carry_on.halts import move_deadlines
from models.flow.carry_on.next_step import carry_on_with, may_have_begun, one_step, stop
from models.flow.decide.decisions import taken
from models.flow.decide.escalations import escalate
from models.flow.judge.grants import session_policies, verdict_on
from models.pure.quorum import Quorum
from models.pure.text import words
from models.session.approval.deadline import DeadlinePassed, overdue, remind
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked, try_lock
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import Result
from models.workspace.halt import Halt

T = TypeVar("T")


def expire_due(workspace_id: str, session_id: str, limit: int = 100) -> int:
    """Expire the overdue approvals of one session, in a transaction of its own. Returns how many; 0 if the session is locked."""
    with transaction(workspace_id) as db:
        locked = try_lock(db, session_id, system("sweep.expire_approvals", workspace_id))
        if locked is None:
            return 0
        due = overdue(db, Approval.pending(db, session_id), locked.now)[:limit]
        with one_step(locked):
            for each in locked.each:
                _expire_of_thread(each, [approval for approval in due if approval.thread_id == each.thread.id])
        return len(due)


def _expire_of_thread(locked: Locked, due: list[Approval]) -> None:
    """Apply `on_timeout` to the overdue approvals of one thread, and take its next step."""
    ends = any(approval.deadline_effect == "end_run" for approval in due)
    for approval in due:
        if approval.deadline_effect != "escalate":
            _expire(locked, approval, ends=ends)
        elif not ends:
            escalate(locked, approval)
    if ends:
        stop(locked, "Nobody decided in time.")
    for approval in due:
        carry_on_with(locked, approval)


def remind_due(workspace_id: str, session_id: str) -> int:
    """Emit the reminders that are due in one session, once per approval. Returns how many; 0 if the session is locked."""
    with transaction(workspace_id) as db:
        locked = try_lock(db, session_id, system("sweep.remind_approvers", workspace_id))
        if locked is None:
            return 0
        waiting = [] if Halt.current(db) else Approval.pending(db, session_id)
        move_deadlines(db, waiting)
        waiting = [a for a in waiting if a.remind_at is not None and a.remind_at <= locked.now]
        for approval in waiting:
            remind(locked, approval)
        return len(waiting)


def transact_in_time(workspace_id: str, act: Callable[[Db], T]) -> T:
    """Return what `act` returns in a transaction, as `transact` does, where `act` may decide approvals.

    If a decision came too late, `on_timeout` is applied now, whether or not a sweep has run. Then the conflict with the winning
    decision is raised, or the refusal that the late decision has caused, with the conflict as its cause.
    """
    try:
        return transact(workspace_id, act)
    except Refusal as refusal:
        late = _late_decision(refusal)
        if late is None:
            raise
        conflict = too_late(late)
        if late is refusal:
            raise conflict from None
        raise refusal from conflict


def _late_decision(error: BaseException | None) -> DeadlinePassed | None:
    """Return the late decision that is the error, or that has caused it."""
    while error is not None and not isinstance(error, DeadlinePassed):
        error = error.__cause__
    return error


def too_late(late: DeadlinePassed) -> Conflict:
    """Apply `on_timeout` now. Returns the error for the late decision."""
    expire_due(late.workspace_id, late.session_id)
    with transaction(late.workspace_id) as db:
        approval = db.get(Approval, late.approval_id)
        return late if approval is None or approval.status == "pending" else taken(approval)


def _expire(locked: Locked, approval: Approval, *, ends: bool) -> None:
    """Apply `on_timeout` to one approval. `ends`: the run ends, so nothing is allowed."""
    seconds = round((approval.expires_at - approval.created_at).total_seconds(), 3)
    if approval.traits.asks_to_run and approval.on_timeout == "allow" and not ends and _may_allow(locked, approval):
        approval.close(locked, "allowed", Decision("allow"))
        approval.call(locked.db).release(locked)
        return
    approval.close(locked, "expired", Decision("deny", deny_message=words.expired_note(seconds)))
    if approval.tool_call_id is not None:
        (status, say), call = approval.traits.silence, approval.call(locked.db)
        text = words.outcome_unknown() if approval.traits.asks_to_run and may_have_begun(locked.db, call) else say(seconds)
        call.settle(locked, status, Result.error(text))


def _may_allow(locked: Locked, approval: Approval) -> bool:
    """True if a deadline may still allow the call: the tool's own configuration says so, and no rule asks or denies.

    Only people answer what asks for several of them.
    """
    rules, call = session_policies(locked), approval.call(locked.db)
    call_input = CallInput.of(locked.db, call)
    if Quorum.of(approval.quorum).needs_people or not approval.may_go_without_people(call_input):
        return False
    return rules.may_allow_on_timeout(call.name, verdict_on(rules, call, call_input))
