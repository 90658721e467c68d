"""The next step of a run. Only this module reads all calls of a turn and decides whether to wait, to go on or to rest."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from models.database.rows import Db
from models.flow.carry_on.hosted_work import retire_work
from models.flow.carry_on.listing import is_stale, list_waiting
from models.flow.carry_on.next_move import all_settled, waits_for
from models.flow.sub_agents.messages import keep
from models.flow.sub_agents.reports import only_people_wake, report
from models.flow.sub_agents.threads import carry_out
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import NOTHING
from models.pure.states import NEEDS_SOMEBODY
from models.pure.text import words
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.event.of_session import Ended, RequiresAction, StatusIdle, StopReason
from models.session.event.row import Event
from models.session.locked import Locked
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.events import OF_AGENTS
from models.session.tool_call.result import Result
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.session.turn.usage import TurnUsage
from models.session.work import Work

BUDGET_REACHED: Ended = {"type": "budget_reached"}


def carry_on(locked: Locked) -> None:
    """Take the thread's next step after a change to the calls of its turn: wait, run, start the next turn, or finish stopping.

    Within `one_step` the step follows at its end.
    """
    thread = locked.thread
    if locked.changes.holds_step:
        locked.changes.owes_step[thread.id] = locked
        return
    calls = ToolCall.of_turn(locked)
    if thread.status == "stopping":
        if not any(call.status == "running" for call in calls):
            rest(locked, cast("StopReason", thread.stop_reason or {"type": "end_turn"}))
        return
    for call in calls:
        if call.kind == OF_AGENTS and call.status == "queued":
            carry_out(locked, call)
    if thread.status == "waiting" and thread.stop_reason == BUDGET_REACHED and not _may_spend(locked):
        return
    needing = [call for call in calls if call.status in NEEDS_SOMEBODY]
    if needing:
        wait(locked, RequiresAction(type="requires_action", event_ids=[call.id for call in needing]))
        return
    locked.run_again()
    if all_settled(call.status for call in calls):
        Turn.queue(locked, 1 if thread.unread else thread.turn_count + 1)


def _may_spend(locked: Locked) -> bool:
    """True if people let the session spend more. Else it waits for them, or rests once they did not."""
    approval = Approval.at_cap(locked.db, locked.thread)
    if approval is not None and approval.status == "pending":
        wait(locked, BUDGET_REACHED)
        return False
    if approval is None or approval.status != "allowed":
        rest(locked, BUDGET_REACHED)
        return False
    return True


def carry_on_with(locked: Locked, approval: Approval) -> None:
    """Take the next step of the thread at hand, and of all others that waited for this question about money."""
    with one_step(locked):
        carry_on(locked)
        for each in waiting_for(locked, approval):
            carry_on(each)


def waiting_for(locked: Locked, approval: Approval) -> list[Locked]:
    """Return the lock with each thread that waits for this question about money."""
    return [each for each in locked.each if each.thread.status == "waiting" and each.thread.cap_approval_id == approval.id]


@contextmanager
def one_step(locked: Locked) -> Iterator[None]:
    """Have each thread take one step after all changes of the block, so that people and webhooks hear once what waits now."""
    changes = locked.changes
    if changes.holds_step:
        yield
        return
    changes.holds_step, changes.owes_step = True, {}
    yield
    changes.holds_step = False
    for each in changes.owes_step.values():
        carry_on(each)


def go_on(locked: Locked) -> None:
    """Start the next turn of a run that rested at a budget or spend limit."""
    locked.run_again()
    Turn.queue(locked, 1 if locked.thread.unread else locked.thread.turn_count + 1)
    Work.want(locked)


def rest(locked: Locked, stop_reason: StopReason, stop_details: dict[str, Any] | None = None) -> None:
    """End the thread's run: the thread is idle. If messages wait, they start the next run at once. A sub-agent reports.

    `stop_details`: why the model refused.
    """
    thread = locked.thread
    report(locked, stop_reason)
    if thread.unread and (not only_people_wake(stop_reason) or Event.awaits_reply(locked.db, thread)):
        locked.run_again()
        Turn.queue(locked, 1)
        Work.want(locked)
        return
    if thread.unread:
        keep(locked)
    is_news = locked.become("idle", stop_reason, stop_details)
    if locked.session.status == "idle":
        retire_work(locked)
    if is_news:
        _tell_rest(locked, stop_details)


def stop(locked: Locked, why: str | None = None) -> None:
    """Stop the thread's run: discard a reply in flight, cancel calls that have not started, and tell running calls to end.

    The thread is idle when these have ended. `why` is for its stop reason.
    """
    thread = locked.thread
    if thread.status in {"idle", "terminated"}:
        return
    at_cap = thread.stop_reason == BUDGET_REACHED
    locked.become("stopping", _reason(locked, why))
    if at_cap:
        _leave_question(locked)
    turn = locked.db.get(Turn, thread.turn_id)
    if turn is not None and turn.status in {"queued", "running"}:
        if turn.status == "running":
            end_unreported(locked, turn)
        turn.cancel(locked)
    for call in ToolCall.of_turn(locked):
        _stop_call(locked, call)
    carry_on(locked)


def _reason(locked: Locked, why: str | None) -> Ended:
    """Return the stop reason of a run that the actor ends."""
    reason = Ended(type="end_turn", ended_by=str(locked.actor))
    if why:
        reason["message"] = why
    return reason


def stop_all(threads: Sequence[Locked], why: str | None = None) -> None:
    """Stop the runs of several threads of a session, as `stop` does. At its end the session says once what it still waits for.

    An idle coordinator among them does not go on with the reports of its sub-agents.
    """
    under_way = [each for each in threads if each.thread.status not in {"idle", "terminated"}]
    if not under_way:
        return
    with one_step(threads[0]):
        for each in threads:
            if each.thread.status == "idle" and each.thread.parent_id is None:
                each.become("idle", _reason(each, why))
            stop(each, why)


def withdraw(locked: Locked, why: str) -> None:
    """Withdraw the question for which the thread itself waits. No-op without one."""
    approval = Approval.at_cap(locked.db, locked.thread)
    if approval is not None and approval.status == "pending":
        approval.close(locked, "cancelled", Decision("deny", deny_message=why))


def _leave_question(locked: Locked) -> None:
    """Withdraw the question for which the thread waited, or leave it to another thread that waits for it."""
    approval = Approval.at_cap(locked.db, locked.thread)
    others = waiting_for(locked, approval) if approval else []
    if approval is None or not others:
        withdraw(locked, "The run was ended.")
    else:
        approval.thread_id, approval.agent_id = others[0].thread.id, others[0].thread.agent_id
    locked.thread.cap_approval_id = None


def end_unreported(locked: Locked, turn: Turn) -> None:
    """End an attempt that its worker did not report: count the highest charge that it may have caused, and close its request.

    A worker that is alive replaces the estimate later (`models.flow.run.turns.correct_usage`).
    """
    charge = Charge.of(turn.quote).for_early_end(None) if turn.quote else None
    TurnUsage.record(locked, turn, [charge] if charge else [])
    turn.end_span(locked, charge.usage if charge else NOTHING, is_error=True)


def may_have_begun(db: Db, call: ToolCall) -> bool:
    """True unless it is certain that no tool and no client has begun this call, which is not running."""
    if call.status == "with_client" or Attempt.may_have_begun(db, call):
        return True
    # A backup does not know what happened after it. And every other question than whether a call may run follows its beginning.
    return any(approval.backup_at or not approval.traits.asks_to_run for approval in Approval.of_call(db, call))


def _stop_call(locked: Locked, call: ToolCall) -> None:
    say = None
    if call.status in {"asked", "unknown"}:
        for approval in Approval.of_call(locked.db, call):
            if approval.status == "pending":
                say = None if approval.traits.asks_to_run else approval.traits.interrupted
                approval.close(locked, "cancelled", Decision("deny", deny_message="The run was ended."))
    if call.status == "unknown":
        call.settle(locked, "cancelled", Result.error(words.outcome_unknown(), is_ours=True))
    elif call.status in {"asked", "queued", "held", "with_client"}:
        say = say or (words.outcome_unknown if may_have_begun(locked.db, call) else words.cancelled)
        call.settle(locked, "cancelled", Result.error(say(), is_ours=True))
    elif call.status == "running" and call.cancel_requested_at is None:
        call.cancel_requested_at = locked.now


def wait(locked: Locked, reason: StopReason) -> None:
    """Have the thread wait for somebody. The session emits the reason once none of its threads runs.

    Emits nothing if the session waits for the same reasons already, unless its listing is stale.
    """
    calls = ToolCall.of_turn(locked)
    locked.thread.waits_for = "person" if reason == BUDGET_REACHED else waits_for(call.status for call in calls)
    if locked.become("waiting", reason):
        _tell_rest(locked)
    elif locked.session.status == "waiting" and locked.session.chat_approvals and is_stale(locked):
        list_waiting(locked)
        locked.rest_again()


def _tell_rest(locked: Locked, stop_details: dict[str, Any] | None = None) -> None:
    """Emit that the session is idle, or what its threads wait for; with chat approvals, after a listing. No-op while it runs."""
    session = locked.session
    if session.status not in {"idle", "waiting"}:
        return
    if session.status == "waiting" and session.chat_approvals:
        list_waiting(locked)
    idle = StatusIdle(type="session.status_idle", stop_reason=cast("StopReason", session.stop_reason))
    if stop_details:
        idle["stop_details"] = stop_details
    locked.tell(idle)
