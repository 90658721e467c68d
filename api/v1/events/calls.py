"""Events of tool calls, of their approvals and of their results."""

from typing import Annotated, Any, Literal

from pydantic import Field

from api.door.requests import Sha256
from api.door.responses import ApprovalId, EventId, GrantId, ResponseModel, Text, Time
from api.v1.approvals.requests import ApprovalKind
from api.v1.approvals.votes import CastVote, Standing
from api.v1.blocks import Result

Permission = Literal["allow", "ask", "deny"]


class Fact(ResponseModel):
    """The fields of every event."""

    id: EventId
    processed_at: Time | None


class AlwaysEvaluation(ResponseModel):
    """The policy has one effect for every call of the tool."""

    type: Literal["always_allow", "always_ask"]


class Denial(ResponseModel):
    """A denial by the policy."""

    type: Literal["deny"]
    reason_code: str


class AutoEvaluation(ResponseModel):
    """The policy denied the call."""

    type: Literal["auto"]
    evaluated_permission: Denial


class PendingApproval(Standing):
    """The approval that the call waits for."""

    id: EventId
    kind: ApprovalKind
    expires_at: Time
    input_sha256: Sha256
    prompt: str
    rule: str
    annotations: dict[str, Any] | None = None
    """Hints of the tool's server, such as MCP's `readOnlyHint`. They are not verified."""


class ServerCall(Fact):
    """The fields of a call that the server or an MCP server runs."""

    name: str
    input: dict[str, Any]
    evaluated_permission: Permission
    evaluation: Annotated[AlwaysEvaluation | AutoEvaluation, Field(discriminator="type")] | None = None
    approval: PendingApproval | None = None


class AgentToolUse(ServerCall):
    """A call of a tool that the server runs."""

    type: Literal["agent.tool_use"]


class AgentMcpToolUse(ServerCall):
    """A call of a tool of an MCP server, by the tool's own name and the agent's name for the server."""

    type: Literal["agent.mcp_tool_use"]
    mcp_server_name: str


class AgentCustomToolUse(Fact):
    """A call of a tool that the client runs."""

    type: Literal["agent.custom_tool_use"]
    name: str
    input: dict[str, Any]
    evaluated_permission: Permission | None = None
    approval: PendingApproval | None = None


class Cached(ResponseModel):
    """The earlier call whose result was reused. The tool did not run again."""

    tool_use_id: EventId
    at: Time


class ServerResult(Fact):
    """The fields of a result of the server or of an MCP server."""

    content: list[Result | Text]
    is_error: bool
    cached: Cached | None = None


class AgentToolResult(ServerResult):
    """The result of a call."""

    type: Literal["agent.tool_result"]
    tool_use_id: EventId


class AgentMcpToolResult(ServerResult):
    """The result of a call of a tool of an MCP server."""

    type: Literal["agent.mcp_tool_result"]
    mcp_tool_use_id: EventId
    structured_content: dict[str, Any] | None = None
    """The result as data, if the tool returned data."""


class AboutApproval(Standing, Fact):
    """The fields of every event of an approval."""

    approval_id: ApprovalId
    tool_use_id: EventId


class ApprovalRequested(PendingApproval, AboutApproval):
    """A call waits for an approval. Like all events `approval.*`, `grant.*` and `model.*`, sent only with `include=approvals`."""

    type: Literal["approval.requested"]
    tool: str


class ApprovalClosed(AboutApproval):
    """An approval was decided, expired or was cancelled."""

    type: Literal["approval.decided", "approval.expired", "approval.cancelled"]
    status: Literal["allowed", "denied", "expired", "cancelled", "answered"]
    decided_by: str


class ApprovalVoted(CastVote, AboutApproval):
    """A person voted. Enough votes to allow, or one vote to deny, decide the approval."""

    type: Literal["approval.voted"]


class ApprovalEscalated(AboutApproval):
    """Nobody decided before the deadline. Now the people of the next level may decide, until a deadline of their own."""

    type: Literal["approval.escalated"]
    tool: str
    level: int
    levels: int
    expires_at: Time


class ApprovalExtended(AboutApproval):
    """The deadline of an approval was moved to a later time."""

    type: Literal["approval.extended"]
    by: str
    expires_at: Time


class ApprovalReminded(AboutApproval):
    """People are reminded of a pending approval."""

    type: Literal["approval.reminded"]
    tool: str
    expires_at: Time


class GrantGiven(Fact):
    """A decision created a grant, which allows later calls."""

    type: Literal["grant.given"]
    grant_id: GrantId
    approval_id: ApprovalId
    scope: Literal["session", "always"]
    tool: str
    covers: str
    expires_at: Time | None
    max_uses: int | None


class StoredConfirmation(Fact):
    """A decision by a person, a grant, an expiry or an interrupt. Edited input and replies are stored as hashes."""

    type: Literal["user.tool_confirmation"]
    tool_use_id: EventId
    result: Literal["allow", "deny"]
    approval_id: ApprovalId
    decided_by: str
    deny_message: str | None = None
    interrupt: bool | None = None
    outcome: Literal["rerun", "happened", "give_up"] | None = None
    updated_input_sha256: Sha256 | None = None
    answers_sha256: Sha256 | None = None
    scope: Literal["session", "always"] | None = None
    match: str | None = None
    expires_in_seconds: float | None = None
    max_uses: int | None = None
    grant_id: GrantId | None = None


class StoredToolResult(Fact):
    """The result of a built-in tool that the client's own worker ran, or the reason why it has none."""

    type: Literal["user.tool_result"]
    tool_use_id: EventId
    content: list[Result]
    is_error: bool


class StoredResult(Fact):
    """The result of a client tool, or the reason why it has none."""

    type: Literal["user.custom_tool_result"]
    custom_tool_use_id: EventId
    content: list[Result]
    is_error: bool
