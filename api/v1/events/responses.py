"""Events in lists and in streams."""

from typing import Annotated, Any, Literal

from pydantic import Field, RootModel, SerializeAsAny

from api.door.responses import ApprovalId, EventId, Metadata, ResponseModel, Text
from api.v1.agents.responses import SessionAgent
from api.v1.blocks import MessageBlock
from api.v1.events.calls import (
    AgentCustomToolUse,
    AgentMcpToolResult,
    AgentMcpToolUse,
    AgentToolResult,
    AgentToolUse,
    ApprovalClosed,
    ApprovalEscalated,
    ApprovalExtended,
    ApprovalReminded,
    ApprovalRequested,
    ApprovalVoted,
    Fact,
    GrantGiven,
    StoredConfirmation,
    StoredResult,
    StoredToolResult,
)
from api.v1.events.faults import SessionError
from api.v1.events.previews import EventDelta, EventStart
from api.v1.spending.amounts import ActiveUsage, Budget


class StoredMessage(Fact):
    """A message of the user. `processed_at` is null while the message is queued."""

    type: Literal["user.message"]
    content: list[MessageBlock]
    on_behalf_of: str | None = None
    """The person who wrote the message, or for whom the API key speaks."""


class StoredInterrupt(Fact):
    """A request to end the run."""

    type: Literal["user.interrupt"]


class OfApprovals(ResponseModel):
    """Marks a message about approvals, which the model did not write and never gets."""

    kind: Literal["waiting", "decided"]
    """`waiting`: the message lists what waits, or says why nothing was decided. `decided`: it names the grants of a word."""
    approval_ids: list[ApprovalId]
    shown_inputs: dict[str, str] = Field(default_factory=dict)
    """The hashes of the inputs that the message shows whole, by approval: a chat word may allow these calls."""


class AgentMessage(Fact):
    """A message of the agent; with `assent`, a message about approvals."""

    type: Literal["agent.message"]
    content: list[Text]
    assent: OfApprovals | None = None


class AgentThinking(Fact):
    """A block of the agent's thinking. The content is not stored."""

    type: Literal["agent.thinking"]


class ContextCompacted(Fact):
    """A summary replaced old turns in the requests to the model. The stored history is unchanged."""

    type: Literal["agent.thread_context_compacted"]


class StatusRunning(Fact):
    """The session is running."""

    type: Literal["session.status_running"]


class StatusRescheduled(Fact):
    """The turn will be retried later."""

    type: Literal["session.status_rescheduled"]


class Ended(ResponseModel):
    """The run is over."""

    type: Literal["end_turn", "retries_exhausted", "budget_reached", "refusal"]
    ended_by: str | None = None
    """The principal that ended the run. Null if the run ended by itself."""
    message: str | None = None
    """The principal's reason."""


class RequiresAction(ResponseModel):
    """A person must decide, or the client must run its tools."""

    type: Literal["requires_action"]
    event_ids: list[EventId]


StopReason = Annotated[Ended | RequiresAction, Field(discriminator="type")]


class StatusIdle(Fact):
    """The session is idle, for the reason in `stop_reason`."""

    type: Literal["session.status_idle"]
    stop_reason: StopReason
    stop_details: dict[str, Any] | None = None


class StatusTerminated(Fact):
    """The session is archived. No more events follow."""

    type: Literal["session.status_terminated"]


class SessionUpdated(Fact):
    """The changed fields of the session."""

    type: Literal["session.updated"]
    title: str | None = None
    metadata: Metadata | None = None
    budget: Budget | None = None
    agent: SessionAgent | None = None


class DeletedEvent(Fact):
    """The session is deleted. Only streams send this event."""

    type: Literal["session.deleted"]


class Tokens(ResponseModel):
    """Numbers of tokens."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int


class ModelAt(ResponseModel):
    """A model at the provider that serves it."""

    provider: str
    model: str


class SkippedModel(ModelAt):
    """An alternative that was not tried."""

    message: str


class ModelFallback(Fact):
    """A turn continued with another model. Like all events `model.*`, sent only with `include=approvals`."""

    type: Literal["model.fallback"]
    source: ModelAt = Field(alias="from")
    to: ModelAt
    reason: Literal["overloaded", "rate_limited", "timed_out", "gone", "circuit_open"]
    message: str
    skipped: list[SkippedModel] = Field(default_factory=list)
    """The alternatives between the two models, each with the reason for skipping it: a window too small, or frequent failures."""


class SessionUsage(Fact):
    """What the session consumed so far."""

    type: Literal["session.usage"]
    usage: ActiveUsage
    budget: Budget | None = None


class RequestStart(Fact):
    """A request to the model has started."""

    type: Literal["span.model_request_start"]


class RequestEnd(Fact):
    """The request to the model has ended."""

    type: Literal["span.model_request_end"]
    model_request_start_id: EventId
    model_usage: Tokens
    is_error: bool


_Sent = StoredMessage | StoredInterrupt | StoredConfirmation | StoredResult | StoredToolResult | ApprovalVoted
SentEvent = Annotated[_Sent, Field(discriminator="type")]
AnyEvent = Annotated[
    _Sent
    | AgentMessage
    | AgentThinking
    | ContextCompacted
    | AgentToolUse
    | AgentMcpToolUse
    | AgentCustomToolUse
    | AgentToolResult
    | AgentMcpToolResult
    | SessionError
    | StatusRunning
    | StatusRescheduled
    | StatusIdle
    | StatusTerminated
    | SessionUpdated
    | SessionUsage
    | RequestStart
    | RequestEnd
    | ApprovalRequested
    | ApprovalClosed
    | ApprovalEscalated
    | ApprovalExtended
    | ApprovalReminded
    | GrantGiven
    | ModelFallback,
    Field(discriminator="type"),
]


class SentEvents(ResponseModel):
    """The stored events."""

    data: SerializeAsAny[list[SentEvent]]


class EventPage(ResponseModel):
    """Events. Send `next_page` as `page` to get the next ones."""

    data: SerializeAsAny[list[AnyEvent]]
    next_page: str | None


class StreamFrame(RootModel[AnyEvent | DeletedEvent | EventStart | EventDelta]):
    """The `data` of a server-sent event. The field `event` holds its type; the field `id`, if present, its position."""
