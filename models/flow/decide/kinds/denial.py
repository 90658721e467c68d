"""A denial, which ends the call that waits."""

from models.flow.carry_on.next_step import may_have_begun
from models.pure.text import words
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.tool_call.result import Result


def deny(locked: Locked, approval: Approval, decision: Decision) -> str:
    """Close the approval as denied, and end the call. Returns the id of the decision's event."""
    call = approval.call(locked.db)
    event_id = approval.close(locked, "denied", decision)
    if say := approval.traits.denied:
        call.settle(locked, "denied", Result.error(say(decision.deny_message)))
        return event_id
    if may_have_begun(locked.db, call):
        call.settle(locked, "cancelled", Result.error(words.given_up(decision.deny_message)))
        return event_id
    say = words.ended_by_person if decision.interrupt else words.denied_by_person
    call.settle(locked, "denied", Result.error(say(decision.deny_message)))
    return event_id
