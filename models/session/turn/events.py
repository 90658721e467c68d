"""The events of turns: requests to the model, what the agent thinks, and what failed. The errors have the types of the SDK."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from models.session.event.fields import EventId, Text, one_of


class AgentThinking(TypedDict):
    """A block of the agent's thinking. The content is not stored."""

    type: Literal["agent.thinking"]


class ContextCompacted(TypedDict):
    """A summary replaced old turns in the requests to the model. The stored history is unchanged."""

    type: Literal["agent.thread_context_compacted"]


class RequestStart(TypedDict):
    """A request to the model has started."""

    type: Literal["span.model_request_start"]


class Tokens(TypedDict):
    """Numbers of tokens."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int


class RequestEnd(TypedDict):
    """The request to the model has ended."""

    type: Literal["span.model_request_end"]
    model_request_start_id: EventId
    model_usage: Tokens
    is_error: bool


class ModelAt(TypedDict):
    """A model at the provider that serves it."""

    provider: str
    model: str


class SkippedModel(ModelAt):
    """An alternative that was not tried."""

    message: str


_From = TypedDict("_From", {"from": ModelAt})  # a keyword cannot be a field of a class


class ModelFallback(_From):
    """A turn continued with another model. Like all events `model.*`, sent only with `include=approvals`."""

    type: Literal["model.fallback"]
    to: ModelAt
    reason: Annotated[str, one_of("overloaded", "rate_limited", "timed_out", "gone", "circuit_open")]
    message: str
    skipped: list[SkippedModel]
    """The alternatives between the two models, each with the reason for skipping it: a window too small, or frequent failures."""


class RetryStatus(TypedDict):
    """Whether the server tries again."""

    type: Literal["retrying", "exhausted", "terminal"]


class SessionFault(TypedDict):
    """An error of the model, or of the run."""

    type: Literal[
        "unknown_error",
        "model_overloaded_error",
        "model_rate_limited_error",
        "model_request_failed_error",
        "billing_error",
        "tool_use_limit_reached_error",
        "compaction_limit_reached_error",
    ]
    message: str
    retry_status: RetryStatus


class ServerFault(TypedDict):
    """An MCP server could not be reached. Its tools are missing until the server responds again."""

    type: Literal["mcp_connection_failed_error", "mcp_authentication_failed_error"]
    mcp_server_name: str
    message: str
    retry_status: RetryStatus


class SessionError(TypedDict):
    """The model or an MCP server could not be reached, or the run had to end."""

    type: Literal["session.error"]
    error: Annotated[SessionFault | ServerFault, Field(discriminator="type")]


class PreviewedEvent(TypedDict):
    """The event to which the deltas belong."""

    id: EventId
    type: Literal["agent.message", "agent.thinking"]


class EventStart(TypedDict):
    """A preview begins: text that the model is writing now. The complete event with this id follows later."""

    type: Literal["event_start"]
    event: PreviewedEvent


class ContentDelta(TypedDict):
    """The next text of one block."""

    type: Literal["content_delta"]
    index: int
    content: Text


class EventDelta(TypedDict):
    """A part of the event with this id. Deltas are not stored."""

    type: Literal["event_delta"]
    event_id: EventId
    delta: ContentDelta
    offset: Annotated[int, SkipJsonSchema()]
    """The number of characters before this delta. Streams leave it out."""
