"""Responses about agents, each at one version."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializeAsAny

from api.door.responses import AgentId, Empty, Metadata, ResponseModel, Time
from api.v1.agents.requests import ServiceAccount
from api.v1.agents.toolsets import BuiltIn
from api.v1.model import Level
from api.v1.policy.responses import ApprovalSettings, Policy, ToolApprovalSettings
from models.database.rows import Db
from models.session.row import Session
from models.workspace import agent, roster


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
    property_order: dict[str, list[str]] | None = None
    """The order of the schema's properties, by JSON Pointer to their object: its author's."""
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


class _Configured(ResponseModel):
    """The fields that agents of every kind have."""

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
    execution_identity: SerializeAsAny[ServiceAccount]


class ThreadAgent(_Configured):
    """The agent of a thread, as it was when the thread began."""

    id: AgentId
    type: Literal["agent"]
    version: int


class InlineAgent(_Configured):
    """An agent that its coordinator defined for one thread, and that is not saved."""

    type: Literal["inline"]


class AgentAtVersion(ResponseModel):
    """An agent at one of its versions."""

    id: AgentId
    type: Literal["agent"]
    version: int


class SwitchedOn(ResponseModel):
    """Allowed."""

    type: Literal["enabled"]


class SwitchedOff(ResponseModel):
    """Not allowed."""

    type: Literal["disabled"]


_Switch = Annotated[SwitchedOn | SwitchedOff, Field(discriminator="type")]


class CoordinatorRoster(ResponseModel):
    """The agents that this agent may begin as sub-agents."""

    type: Literal["coordinator"]
    agents: list[AgentAtVersion]


class EnabledSubAgents(ResponseModel):
    """The agent may begin sub-agents."""

    type: Literal["enabled"]
    predefined_agents: list[AgentAtVersion]
    inline_agents: _Switch


class _Multiagent(ResponseModel):
    type: Literal["multiagent_20261001"]
    workflows: SwitchedOff
    advisor: SwitchedOff


class MultiagentRoster(_Multiagent):
    """Which sub-agents the agent may begin. Workflows and advisors are not supported."""

    subagents: Annotated[EnabledSubAgents | SwitchedOff, Field(discriminator="type")]


Roster = Annotated[CoordinatorRoster | MultiagentRoster, Field(discriminator="type")]


class SessionCoordinator(ResponseModel):
    """The agents that the session's agent may begin as sub-agents, as they were when the session was created."""

    type: Literal["coordinator"]
    agents: SerializeAsAny[list[ThreadAgent]]


class SessionSubAgents(ResponseModel):
    """The session's agent may begin sub-agents."""

    type: Literal["enabled"]
    predefined_agents: SerializeAsAny[list[ThreadAgent]]
    inline_agents: _Switch


class SessionMultiagent(_Multiagent):
    """Which sub-agents the session's agent may begin. Workflows and advisors are not supported."""

    subagents: Annotated[SessionSubAgents | SwitchedOff, Field(discriminator="type")]


SessionRoster = Annotated[SessionCoordinator | SessionMultiagent, Field(discriminator="type")]


class Agent(ThreadAgent):
    """An agent at one of its versions."""

    multiagent: SerializeAsAny[Roster | None]
    metadata: Metadata
    created_at: Time
    updated_at: Time
    archived_at: Time | None

    @classmethod
    def of(cls, row: agent.Agent, version: agent.AgentVersion) -> Self:
        """Return an agent at one of its versions."""
        updated_at = row.updated_at if version.version == row.version else version.created_at
        return cls.stored(
            **version.body | {"multiagent": roster.at_versions(version)},
            id=row.id,
            type="agent",
            version=version.version,
            created_at=row.created_at,
            updated_at=updated_at,
            archived_at=row.archived_at,
        )


class SessionAgent(ThreadAgent):
    """The agent as it was when the session was created, with the session's overrides."""

    multiagent: SerializeAsAny[SessionRoster | None]

    @classmethod
    def of(cls, db: Db, row: Session) -> Self:
        """Return the agent of a session."""
        return cls.stored(**roster.with_bodies(db, row.agent(db)))
