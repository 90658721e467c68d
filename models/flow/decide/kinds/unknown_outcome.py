"""A call whose outcome is unknown: it happened, it runs again, or it is given up."""

from models.audit.principal import Principal
from models.database.rows import Db
from models.pure.text import words
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.tool_call.result import text
from models.session.tool_call.row import ToolCall


def carry_out(db: Db, session: Session, principal: Principal, approval: Approval, call: ToolCall, decision: Decision) -> str:
    """Settle the call by what became of it, or let it run again."""
    event_id = approval.close(db, session, principal, "answered", decision)
    if decision.outcome == "rerun":
        call.release(db, session, grants=None)
    elif decision.outcome == "happened":
        call.settle(db, session, "done", list(decision.content), is_error=False)
    else:
        call.settle(db, session, "done", text(words.given_up(decision.deny_message)), is_error=True)
    return event_id
