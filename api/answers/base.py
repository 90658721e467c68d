"""Base classes and common types of the answers."""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from api.examples import IDS

T = TypeVar("T")

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
AgentId = Annotated[str, Field(examples=[IDS["agent_id"]])]
ApiKeyId = Annotated[str, Field(examples=[IDS["api_key_id"]])]
ApprovalId = Annotated[str, Field(examples=[IDS["approval_id"]])]
DeliveryId = Annotated[str, Field(examples=[IDS["delivery_id"]])]
EnvironmentId = Annotated[str, Field(examples=[IDS["environment_id"]])]
EventId = Annotated[str, Field(examples=[IDS["event_id"]])]
GrantId = Annotated[str, Field(examples=[IDS["grant_id"]])]
GroupId = Annotated[str, Field(examples=[IDS["rbac_group_id"]])]
InviteId = Annotated[str, Field(examples=[IDS["invite_id"]])]
RequestId = Annotated[str, Field(examples=[IDS["request_id"]])]
SessionId = Annotated[str, Field(examples=[IDS["session_id"]])]
ThreadId = Annotated[str, Field(examples=[IDS["thread_id"]])]
UserId = Annotated[str, Field(examples=[IDS["user_id"]])]
WebhookId = Annotated[str, Field(examples=[IDS["webhook_id"]])]
WorkId = Annotated[str, Field(examples=[IDS["work_id"]])]
WorkspaceId = Annotated[str, Field(examples=[IDS["workspace_id"]])]
Empty = Annotated[list[Any], Field(max_length=0)]
Metadata = dict[str, str]


class Answer(BaseModel):
    """A JSON object in an answer."""

    model_config = ConfigDict(strict=True, frozen=True)


class Page(Answer, Generic[T]):
    """Rows of a list. Send `next_page` as `page` to get the next rows."""

    data: list[T]
    next_page: str | None


class Text(Answer):
    """Plain text."""

    type: Literal["text"]
    text: str = Field(examples=["The refund is done."])


class ErrorDetail(Answer):
    """The error. The message names the field, the fault and the remedy."""

    type: Literal[
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "conflict_error",
        "rate_limit_error",
        "api_error",
        "overloaded_error",
    ]
    message: str = Field(examples=["limit: must be at most 100."])
    winner: dict[str, Any] = Field({}, description="For a 409: the decision or version that came first.")
    details: dict[str, Any] = Field({}, description="For a 412: `error_code`, and the present state of the row.")


class Error(Answer):
    """The body of every error."""

    type: Literal["error"]
    error: ErrorDetail
    request_id: RequestId | None
