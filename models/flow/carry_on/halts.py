"""The effect of a halt on sessions: deadlines stand still while it lasts, and held calls go to their clients when it ends."""

from collections.abc import Sequence

from models.audit.principal import system
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.flow.carry_on.next_step import carry_on, one_step
from models.session.approval import confirmation
from models.session.approval.row import Approval
from models.session.locked import Locked, try_lock
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt, have_passed, is_halted


def silent(locked: Locked, calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Return the calls whose client sent no result in time."""
    waiting = [(call, call.answer_by, call.deadline_from) for call in calls if call.status == "with_client"]
    timed = [(call, at, since) for call, at, since in waiting if at is not None and since is not None]
    late = have_passed(locked.db, [(at, since) for _, at, since in timed], locked.now)
    return [call for (call, _, _), is_late in zip(timed, late, strict=True) if is_late]


def move_deadlines(db: Db, approvals: Sequence[Approval] = (), calls: Sequence[ToolCall] = ()) -> None:
    """Move deadlines and reminders by the halts that ended since these deadlines began to run. Idempotent."""
    running = [approval.deadline_from for approval in approvals] + [call.deadline_from for call in calls if call.deadline_from]
    since = min(running, default=None)
    for halt in Halt.since(db, since) if since else ():
        if halt.ended_at is None:
            continue
        for approval in approvals:
            if approval.deadline_from < halt.ended_at:
                shift = halt.stops(approval.deadline_from, halt.ended_at)
                approval.expires_at += shift
                approval.remind_at = approval.remind_at + shift if approval.remind_at else None
                approval.deadline_from = halt.ended_at
        for call in calls:
            if call.answer_by and call.deadline_from and call.deadline_from < halt.ended_at:
                shift = halt.stops(call.deadline_from, halt.ended_at)
                call.answer_by, call.deadline_from = call.answer_by + shift, halt.ended_at


def resume(workspace_id: str, session_id: str) -> None:
    """After a halt: move the deadlines of one session, and give held calls to their client. No-op if the session is locked."""
    with transaction(workspace_id) as db:
        locked = try_lock(db, session_id, system("sweep.end_halts", workspace_id))
        if locked is None or is_halted(db):
            return
        calls = [call for each in locked.each for call in ToolCall.of_turn(each)]
        move_deadlines(db, Approval.pending(db, session_id), [call for call in calls if call.status == "with_client"])
        with one_step(locked):
            for call in calls:
                if call.status == "held":
                    deliver(locked.at(call), call)
                    carry_on(locked.at(call))


def deliver(locked: Locked, call: ToolCall) -> None:
    """Give a held call to its client, with the confirmation that the client waits for, if the call's event is out already."""
    allowed = [approval for approval in Approval.of_call(locked.db, call) if approval.lets_run(call.input_sha256)]
    seen = call.announced
    call.deliver(locked, allowed[-1].decided_shown if allowed else None)
    if seen and allowed:
        confirmation.send(locked, allowed[-1])


def settled(workspace_id: str, halt_id: str) -> None:
    """Record that the halt has moved all deadlines."""
    with transaction(workspace_id) as db:
        halt = db.get(Halt, halt_id)
        if halt is not None and halt.settled_at is None:
            halt.settled_at = clock.now(db)
