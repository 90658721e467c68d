"""Approvals as we answer them: the question, what was shown, and the answer."""

from typing import Any, Literal

from pydantic import Field

from api.answers.base import AgentId, Answer, ApprovalId, EventId, GrantId, SessionId, Time
from api.answers.grants import Grant
from api.requests.approvals import ApprovalKind
from api.requests.base import Sha256
from api.requests.blocks import Result


class MadeDecision(Answer):
    """What was decided."""

    result: Literal["allow", "deny"] | None = None
    deny_message: str | None = None
    interrupt: bool | None = None
    updated_input_sha256: Sha256 | None = None
    """Of the edited input as it was sent; `decided_input` is what came of it."""
    answers_sha256: Sha256 | None = None
    """Of what was said to each of the `questions`."""
    respond: list[Result] | None = None
    scope: Literal["session", "always"] | None = None
    match: str | None = None
    expires_in_seconds: float | None = None
    max_uses: int | None = None
    outcome: Literal["rerun", "happened", "give_up"] | None = None
    content: list[Result] | None = None
    grant_id: GrantId | None = None
    """The grant that decided, where no person did."""


class Covers(Answer):
    """What a grant would cover, in words."""

    tool: str
    """With the default `match`, `tool`."""
    exact: str
    """With `match: exact`."""


class FormAsked(Answer):
    """A form to fill in."""

    message: str
    fields: dict[str, Any] = Field(alias="schema")
    """JSON Schema of the content that accepts it."""


class VisitAsked(Answer):
    """A page to visit; accepted once that was done."""

    message: str
    url: str


class AttemptTold(Answer):
    """The attempt whose outcome nobody knows."""

    number: int
    worker: str | None
    started_at: Time
    output: str
    """What it had printed when its worker last said so."""


class Approval(Answer):
    """One question about one call."""

    id: ApprovalId
    type: Literal["approval"]
    kind: ApprovalKind
    status: Literal["pending", "allowed", "denied", "expired", "cancelled", "answered"]
    session_id: SessionId
    agent_id: AgentId | None
    tool_use_id: EventId
    tool: str = Field(examples=["bash"])
    prompt: str = Field(examples=["Run this command?"])
    input: dict[str, Any] = Field(examples=[{"command": "git push origin main"}])
    """Secrets are masked, unless the request reveals them."""
    input_canonical: str = Field(examples=['{"command":"git push origin main"}'])
    """The same as RFC 8785 spells it: what `input_sha256` is the hash of, where nothing is masked."""
    masked: list[str] = Field(examples=[[]])
    """JSON Pointers to what is masked in `input`."""
    input_sha256: Sha256
    """Of the real input."""
    rule: str = Field(examples=["agent rule: ask bash(git push *)"])
    annotations: dict[str, Any] | None
    """What the tool's own side says that it does, as MCP's `readOnlyHint`: nobody has made sure of it."""
    leads_to: dict[str, str] | None
    """By JSON Pointer, where paths of the input lead by symbolic links, if that is why it is asked. Allowing it allows no other."""
    questions: dict[str, FormAsked | VisitAsked] | None
    """Of kind `question`: what the tool must be told before it goes on. Decide with `answers`, by the same keys."""
    attempt: AttemptTold | None
    """Of kind `unknown_outcome`."""
    covers: Covers | None
    created_at: Time
    expires_at: Time
    on_timeout: Literal["deny", "end_run", "allow"]
    remind_at: Time | None
    """When people are to be reminded; null once they were, or are not to be."""
    reminded_at: Time | None
    decision: MadeDecision | None
    decided_input: dict[str, Any] | None
    """What a person put in the place of `input`; masked likewise."""
    decided_sha256: Sha256 | None = Field(examples=[None])
    """Of the real one."""
    decided_by: str | None
    decided_at: Time | None
    event_id: EventId | None = Field(examples=[None])
    """The `user.tool_confirmation` that the decision was stored as."""
    grant: Grant | None
    """What the decision gave beyond this call."""


class BulkDecided(Answer):
    """One of several decisions."""

    approval_id: ApprovalId
    outcome: Literal["decided", "repeated"]
    approval: Approval


class AllDecided(Answer):
    """All of the decisions, in their order."""

    data: list[BulkDecided]


class GrantPreview(Answer):
    """What a grant would be."""

    type: Literal["grant_preview"]
    scope: Literal["session", "always"]
    match: str | dict[str, Any] = Field(examples=["bash(git push *)"])
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    """In words."""
    waiting: int
    """Calls that wait, beside this one, and would be released; as many as are looked at, at most."""
