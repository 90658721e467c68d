"""A call whose outcome is unknown: it happened, it runs again, or it is given up."""

from models.pure.text import words
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.tool_call.result import Result


def carry_out(locked: Locked, approval: Approval, decision: Decision) -> str:
    """Settle the call by what became of it, or let it run again."""
    call = approval.call(locked.db)
    event_id = approval.close(locked, "answered", decision)
    if decision.outcome == "rerun":
        call.release(locked, grants=None)
    elif decision.outcome == "happened":
        call.settle(locked, "done", Result(list(decision.content)))
    else:
        call.settle(locked, "done", Result.error(words.given_up(decision.deny_message)))
    return event_id
