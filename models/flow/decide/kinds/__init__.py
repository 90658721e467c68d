"""What the decisions on an approval do, one file per kind: each closes the approval, and settles or releases its call."""

from collections.abc import Callable

from models.flow.decide.kinds import budget, question, tool_call, unknown_outcome
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.tool_call.row import ToolCall

Verb = Callable[[Locked, Approval, ToolCall, Decision], str]
CARRY_OUT: dict[str, Verb] = {
    "tool_call": tool_call.carry_out,
    "question": question.carry_out,
    "unknown_outcome": unknown_outcome.carry_out,
    "budget": budget.carry_out,
}
"""By the column `Approval.kind`: the verb that carries a decision out and returns the id of its event."""
