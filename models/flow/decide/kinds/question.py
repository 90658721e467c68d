"""A tool's question: the call goes on with the answers, or it ends."""

from models.audit.principal import Principal
from models.database.rows import Db
from models.flow.decide.kinds.denial import deny
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall


def carry_out(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    """Let the call go on with the answers, or deny it."""
    if decision.result == "deny":
        return deny(db, session, principal, approval, call, decision)
    event_id = approval.close(db, session, principal, "answered", decision)
    CallInput.of(db, call.id).answers = decision.answers
    call.release(db, session)
    return event_id
