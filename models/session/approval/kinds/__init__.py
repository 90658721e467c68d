"""The kinds of approvals. One file per kind says which decisions fit, what silence and an interrupt do, and how people are asked.

`models.flow.decide.kinds` has what the decisions do, also one file per kind.
"""

from models.session.approval.kinds import budget, question, tool_call, unknown_outcome
from models.session.approval.kinds.kind import Kind

KINDS: dict[str, Kind] = {each.KIND.name: each.KIND for each in (tool_call, question, unknown_outcome, budget)}
"""By the column `Approval.kind`."""
