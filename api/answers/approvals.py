"""Approvals as we answer them: the question, what was shown, and the answer."""

from typing import Any, Literal

from api.answers.base import Answer, Time
from api.requests.base import Sha256
from api.requests.events import Result


class MadeDecision(Answer):
    """What was decided."""

    result: Literal["allow", "deny"] | None = None
    deny_message: str | None = None
    interrupt: bool | None = None
    outcome: Literal["rerun", "happened", "give_up"] | None = None
    content: list[Result] | None = None


class Approval(Answer):
    """One question about one call."""

    id: str
    type: Literal["approval"]
    kind: Literal["tool_call", "unknown_outcome"]
    status: Literal["pending", "allowed", "denied", "expired", "cancelled", "answered"]
    session_id: str
    tool_use_id: str
    tool: str
    prompt: str
    input: dict[str, Any]
    input_canonical: str
    """The same as RFC 8785 spells it: what `input_sha256` is the hash of."""
    input_sha256: Sha256
    rule: str
    created_at: Time
    expires_at: Time
    decision: MadeDecision | None
    decided_by: str | None
    decided_at: Time | None
    event_id: str | None
    """The `user.tool_confirmation` that the decision was stored as."""
