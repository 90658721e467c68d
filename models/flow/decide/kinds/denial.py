"""A denial, which ends the call of any kind of approval."""

from models.audit.principal import Principal
from models.database.rows import Db
from models.pure.text import words
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.tool_call.result import text
from models.session.tool_call.row import ToolCall


def deny(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    """Close the approval as denied, and end the call. Returns the id of the decision's event."""
    event_id = approval.close(db, session, principal, "denied", decision)
    if say := approval.traits.denied:
        call.settle(db, session, "denied", text(say(decision.deny_message)), is_error=True)
        return event_id
    if call.attempt:  # an earlier attempt began, and was lost before the grant behind it was
        call.settle(db, session, "cancelled", text(words.given_up(decision.deny_message)), is_error=True)
        return event_id
    say = words.ended_by_person if decision.interrupt else words.denied_by_person
    call.settle(db, session, "denied", text(say(decision.deny_message)), is_error=True)
    return event_id
