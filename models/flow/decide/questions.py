"""Answers to a tool's question that name no request."""

from dataclasses import replace

from models.errors import Invalid
from models.session.approval.decision import Decision
from models.session.approval.row import Approval


def with_keys(approval: Approval, decision: Decision) -> Decision:
    """Return the decision. An answer without a key gets the key of the only request. Raises Invalid for several requests."""
    requests = approval.questions or {}
    if decision.answers is None or "" not in decision.answers or approval.questions is None:
        return decision
    if len(requests) != 1:
        raise Invalid("answer", f"is for one request; asked are {', '.join(sorted(requests))}: send answers.")
    return replace(decision, answers=dict.fromkeys(requests, decision.answers[""]))
