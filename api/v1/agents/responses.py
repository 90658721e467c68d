"""Responses about agents, each at one version."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializeAsAny

from api.door.responses import AgentId, Empty, Metadata, ResponseModel, Time
from api.v1.agents.requests import ServiceAccount
from api.v1.agents.toolsets import BuiltIn
from api.v1.model import Level
from api.v1.policy.responses import ApprovalSettings, Policy, ToolApprovalSettings
from models.workspace import agent


class ToolsetDefaults(ResponseModel):
    """The settings of every tool of the toolset without settings of its own."""

    enabled: bool
    permission_policy: Policy
    approval: ApprovalSettings | None = None


class BuiltInConfig(ResponseModel):
    """The settings of one built-in tool."""

    type: BuiltIn
    name: BuiltIn
    enabled: bool
    permission_policy: Policy
    policy_from: Literal["tool", "toolset", "default"] = "tool"
    """The origin of the policy. For `default`, the policies of the agent and of the workspace come first."""
    approval: ToolApprovalSettings | None = None


class AgentToolset(ResponseModel):
    """The built-in tools, each with all its settings."""

    type: Literal["agent_toolset_20260401"]
    default_config: ToolsetDefaults
    configs: list[BuiltInConfig]


class CustomTool(ResponseModel):
    """A tool that the client runs."""

    type: Literal["custom"]
    name: str
    description: str
    input_schema: dict[str, Any]
    permission_policy: Policy | None = None
    approval: ToolApprovalSettings | None = None
    result_timeout_seconds: float | None = None


class ServerDefinition(ResponseModel):
    """An MCP server, or a toolset of this server's operator."""

    type: Literal["url"]
    name: str = Field(examples=["billing"])
    url: str = Field(examples=["assent:billing"])


class McpToolsetDefaults(ToolsetDefaults):
    """The settings of every tool of an MCP server without settings of its own."""

    policy_from: Literal["toolset", "default"]
    """The origin of the policy. For `default`, the policies of the agent and of the workspace come first."""


class McpToolConfig(ResponseModel):
    """The settings of one tool of an MCP server."""

    name: str
    enabled: bool
    permission_policy: Policy
    policy_from: Literal["tool", "toolset", "default"]
    approval: ToolApprovalSettings | None = None


class McpToolset(ResponseModel):
    """The tools of an MCP server. `configs` lists the tools with settings of their own."""

    type: Literal["mcp_toolset"]
    mcp_server_name: str
    default_config: McpToolsetDefaults
    configs: list[McpToolConfig]


_TOOLSET = {
    "type": "mcp_toolset",
    "mcp_server_name": "billing",
    "default_config": {"enabled": True, "permission_policy": {"type": "always_ask"}, "policy_from": "default"},
    "configs": [],
}
AgentTool = Annotated[AgentToolset | McpToolset | CustomTool, Field(discriminator="type")]


class ModelEffort(ResponseModel):
    """How hard the model works."""

    type: Level


class ModelConfig(ResponseModel):
    """The model that the agent uses."""

    id: str = Field(examples=["claude-opus-5-5"])
    effort: ModelEffort | None = None
    fallbacks: list[str] | None = None
    """The models to try in this order while the model `id` does not respond."""
    exclude_providers: list[str] | None = None
    """The providers that are never used for this agent."""


class AgentBody(ResponseModel):
    """The fields of agents, and of the agents of sessions."""

    id: AgentId
    type: Literal["agent"]
    version: int
    name: str = Field(examples=["Refunds"])
    description: str | None = Field(examples=["Answers questions about refunds."])
    model: SerializeAsAny[ModelConfig]
    system: str | None = Field(examples=["You handle refunds."])
    tools: SerializeAsAny[list[AgentTool]] = Field(examples=[[_TOOLSET]])
    permission_policy: SerializeAsAny[Policy | None] = None
    approval: SerializeAsAny[ApprovalSettings | None] = None
    max_turns: int | None
    disable_parallel_tool_use: bool = False
    """Whether the model calls at most one tool per turn."""
    completion_approvals: Literal["text", "tools"] = "text"
    """How clients of `/v1/chat/completions` are asked for approvals."""
    chat_approvals: bool = False
    """Whether chat words decide approvals, in sessions that do not say so themselves."""
    mcp_servers: SerializeAsAny[list[ServerDefinition]]
    skills: Empty
    multiagent: None
    execution_identity: SerializeAsAny[ServiceAccount]


class Agent(AgentBody):
    """An agent at one of its versions."""

    metadata: Metadata
    created_at: Time
    updated_at: Time
    archived_at: Time | None

    @classmethod
    def of(cls, row: agent.Agent, version: agent.AgentVersion) -> Self:
        """Return an agent at one of its versions."""
        updated_at = row.updated_at if version.version == row.version else version.created_at
        return cls.stored(
            **version.body,
            id=row.id,
            type="agent",
            version=version.version,
            created_at=row.created_at,
            updated_at=updated_at,
            archived_at=row.archived_at,
        )


class SessionAgent(AgentBody):
    """The agent as it was when the session was created, with the session's overrides."""
