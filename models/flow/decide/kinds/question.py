"""A tool's question: the call goes on with the answers, or it ends."""

from models.flow.decide.kinds.denial import deny
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.tool_call.input import CallInput


def carry_out(locked: Locked, approval: Approval, decision: Decision) -> str:
    """Let the call go on with the answers, or deny it."""
    call = approval.call(locked.db)
    if decision.result == "deny":
        return deny(locked, approval, decision)
    event_id = approval.close(locked, "answered", decision)
    CallInput.of(locked.db, call).answers = decision.answers
    call.release(locked)
    return event_id
