"""Events of errors, with the error types that the SDK knows."""

from typing import Annotated, Literal

from pydantic import Field

from api.door.responses import ResponseModel
from api.v1.events.calls import Fact


class RetryStatus(ResponseModel):
    """Whether the server tries again."""

    type: Literal["retrying", "exhausted", "terminal"]


class SessionFault(ResponseModel):
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


class ServerFault(ResponseModel):
    """An MCP server could not be reached. Its tools are missing until the server answers again."""

    type: Literal["mcp_connection_failed_error", "mcp_authentication_failed_error"]
    mcp_server_name: str
    message: str
    retry_status: RetryStatus


class SessionError(Fact):
    """The model or an MCP server could not be reached, or the run had to end."""

    type: Literal["session.error"]
    error: Annotated[SessionFault | ServerFault, Field(discriminator="type")]
