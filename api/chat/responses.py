"""Responses in OpenAI's format."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, RootModel

from api.chat.requests import MODEL
from api.door.examples import IDS
from api.door.responses import Identified, IdPage, ResponseModel, SessionId, Time
from api.v1.approvals.requests import ApprovalKind
from api.v1.approvals.responses import MadeDecision
from api.v1.sessions.waiting import WaitingForPerson
from models.session.approval.row import Approval
from models.session.approval.vote import CastVote, Vote
from models.session.event.fields import ApprovalId, EventId

CompletionId = Annotated[str, Field(examples=["chatcmpl_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])]
ModelName = Annotated[str, Field(examples=[MODEL + IDS["agent_id"]])]
Seconds = Annotated[int, Field(examples=[1769860800])]
"""Since 1970."""
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class CalledFunction(ResponseModel):
    """The name of a tool, and its input as JSON."""

    name: str = Field(examples=["look_up"])
    arguments: str = Field(examples=['{"order": 1042}'])


class ToolCall(ResponseModel):
    """A call of a tool."""

    id: EventId
    type: Literal["function"]
    function: CalledFunction


class ToolCallDelta(ToolCall):
    """A call of a tool, in a stream."""

    index: int


class AssistantReply(ResponseModel):
    """The agent's message."""

    role: Literal["assistant"]
    content: str | None = Field(examples=["The refund is done."])
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None


class Choice(ResponseModel):
    """The reply. There is always one."""

    index: int
    message: AssistantReply
    finish_reason: FinishReason
    logprobs: None


class PromptTokens(ResponseModel):
    """The part of the prompt's tokens that the model's cache served or stored."""

    cached_tokens: int
    cache_write_tokens: int


class CompletionUsage(ResponseModel):
    """The tokens of the requests to the model that ended since the last reply."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokens


class OfAssent(ResponseModel):
    """The part of a response that OpenAI's format does not have."""

    session_id: SessionId
    waiting_on: list[WaitingForPerson] | None = Field(None, description="The approvals that the session waits for.", examples=[[]])
    running: bool | None = Field(None, description="True if the time of the request was over before the run ended.")
    ignored: list[str] | None = Field(None, description="Fields of the request without an effect.")


class ChatCompletion(ResponseModel):
    """The agent's reply."""

    id: CompletionId
    object: Literal["chat.completion"]
    created: Seconds
    model: ModelName
    choices: list[Choice]
    usage: CompletionUsage
    assent: OfAssent


class Delta(ResponseModel):
    """More of the reply."""

    role: Literal["assistant"] | None = None
    content: str | None = Field(None, examples=["The refund"])
    tool_calls: list[ToolCallDelta] | None = None


class ChunkChoice(ResponseModel):
    """More of the reply."""

    index: int
    delta: Delta
    finish_reason: FinishReason | None
    logprobs: None


class ChatChunk(ResponseModel):
    """A part of the agent's reply. The first and the last with a choice have `assent`. The stream ends with `[DONE]`."""

    id: CompletionId
    object: Literal["chat.completion.chunk"]
    created: Seconds
    model: ModelName
    choices: list[ChunkChoice]
    usage: CompletionUsage | None = None
    assent: OfAssent | None = None


class ChatErrorDetail(ResponseModel):
    """The error. The message names the field, the fault and the remedy."""

    message: str = Field(examples=["messages.0.content: must hold more than white space: models refuse it."])
    type: Literal[
        "invalid_request_error", "authentication_error", "permission_error", "not_found_error", "rate_limit_error", "server_error"
    ]
    param: str | None = Field(examples=["messages.0.content"])
    code: str | None
    winner: dict[str, Any] | None = None
    """What happened first, such as the decision of somebody else, and who decided."""


class ChatError(ResponseModel):
    """The body of every error."""

    error: ChatErrorDetail


class ListedModel(ResponseModel):
    """An agent as a model."""

    id: ModelName
    object: Literal["model"]
    created: Seconds
    owned_by: str = Field(examples=["assent"])
    name: str = Field(examples=["Refunds"])


class ModelList(ResponseModel):
    """The workspace's agents as models, newest first."""

    object: Literal["list"]
    data: list[ListedModel]


class ListedDecision(ResponseModel):
    """One question about a call, and its decision."""

    approval_id: ApprovalId
    kind: ApprovalKind
    status: Literal["pending", "allowed", "denied", "expired", "cancelled", "answered"]
    decision: MadeDecision | None
    decided_input: dict[str, Any] | None
    """The input that a person sent to run instead of the call's, with secrets masked."""
    decided_by: str | None
    """Who decided: a person or an API key, a grant, or a deadline. With several voters the last one, and `votes` has all."""
    decided_at: Time | None
    votes: list[CastVote]

    @classmethod
    def of(cls, row: Approval, votes: Sequence[Vote]) -> Self:
        """Return the decision of an approval, with the votes that stand."""
        decision = row.shown("decision")
        return cls.from_row(
            row,
            approval_id=row.id,
            decision=MadeDecision.stored(**decision) if decision else None,
            decided_input=row.decided_shown,
            votes=[vote.summary for vote in votes],
        )


class OfListed(ResponseModel):
    """The part of a message that OpenAI's format does not have."""

    approvals: list[ListedDecision]
    """The approvals of the call, oldest first."""


class ModelInfo(Identified):
    """An agent as a model, in the SDK's form."""

    id: ModelName
    type: Literal["model"]
    display_name: str = Field(examples=["Refunds"])
    created_at: Time
    lifecycle: Literal["active"]


class ModelPage(IdPage[ModelInfo]):
    """A page of the workspace's agents as models, newest first."""


class Models(RootModel[ModelList | ModelPage]):
    """A list in OpenAI's form or, for a request with the header `anthropic-version`, in the form of Anthropic's SDK."""


class ListedMessage(ResponseModel):
    """A message of a session."""

    role: Literal["user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = Field(examples=["Please refund order 1042."])
    tool_calls: list[ToolCall] | None = None
    tool_call_id: EventId | None = None
    assent: OfListed | None = None


class ListedMessages(ResponseModel):
    """Messages in their order. Send `next_page` as `page` to get the next ones."""

    object: Literal["list"]
    data: list[ListedMessage]
    next_page: str | None


_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


def error(status: int, message: str, field: str) -> dict[str, Any]:
    """Return an error's body in OpenAI's format."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    code = "model_not_found" if status == 404 and field == "model" else _CODES.get(status)
    return {"error": {"message": message, "type": kind, "param": field or None, "code": code}}
