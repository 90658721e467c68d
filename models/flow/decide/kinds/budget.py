"""A question about spending: the budget is raised, or a spend limit lets the session spend more, or the session rests."""

import json

from models.flow.spend import limits
from models.flow.spend.budgets import raise_by
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked


def carry_out(locked: Locked, approval: Approval, decision: Decision) -> str:
    """Let the session spend the amount, or deny it."""
    if decision.result == "deny":
        return approval.close(locked, "denied", decision)
    event_id = approval.close(locked, "allowed", decision)
    raise_cap = limits.let_spend if approval.tool == limits.TOOL else raise_by
    raise_cap(locked, approval, json.loads(approval.decided_input or approval.input))
    return event_id
