"""Answers about sessions."""

from typing import Annotated, Literal

from pydantic import Field

from api.answers.agents import SessionAgent
from api.answers.base import Answer, ApprovalId, Empty, EnvironmentId, EventId, Metadata, Page, SessionId, Time
from api.answers.events import StopReason
from api.answers.votes import Standing
from api.requests.approvals import ApprovalKind


class Waiting(Standing):
    """One approval that a session waits for."""

    approval_id: ApprovalId
    tool_use_id: EventId
    tool: str = Field(examples=["bash"])
    kind: ApprovalKind
    since: Time
    expires_at: Time


class CacheCreation(Answer):
    """Tokens written to the model's cache."""

    ephemeral_5m_input_tokens: int
    ephemeral_1h_input_tokens: int


class Usage(Answer):
    """The tokens used so far."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    cache_creation: CacheCreation


class Session(Answer):
    """A durable conversation with one agent."""

    id: SessionId
    type: Literal["session"]
    agent: SessionAgent
    environment_id: EnvironmentId
    status: Literal["idle", "running", "rescheduling", "terminated"]
    stop_reason: StopReason | None
    waiting_on: list[Waiting] = Field(examples=[[]])
    title: str | None = Field(examples=["Order 1042"])
    metadata: Metadata
    max_turns: int
    chat_approvals: bool
    on_ask: Literal["inbox", "deny"] = Field(examples=["inbox"])
    on_behalf_of: str | None = Field(examples=[None])
    """The person for whom the session was created, such as `user:user_...`."""
    outcome_evaluations: Empty
    resources: Empty
    stats: Annotated[dict[str, int], Field(max_length=0)]
    usage: Usage
    vault_ids: Empty
    created_at: Time
    updated_at: Time
    archived_at: Time | None


class SessionPage(Page[Session]):
    """Sessions. Send `prev_page` as `page` to get the previous page."""

    prev_page: str | None


class SessionDeleted(Answer):
    """The session and its history are deleted."""

    id: SessionId
    type: Literal["session_deleted"]


class NoResources(Answer):
    """An empty list, since this server mounts no resources."""

    data: Empty
    next_page: None
