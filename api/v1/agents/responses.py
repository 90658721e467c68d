"""Answers about agents, each at one version."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializeAsAny

from api.door.responses import AgentId, Answer, Empty, Metadata, Time
from api.v1.agents.requests import ServiceAccount
from api.v1.agents.toolsets import BuiltIn
from api.v1.model import Level
from api.v1.policy.responses import AnsweredApproval, AnsweredDefaults, AnsweredPolicy
from models.workspace import agent as rows


class AnsweredDefault(Answer):
    """The settings of every tool of the toolset without settings of its own."""

    enabled: bool
    permission_policy: AnsweredPolicy
    approval: AnsweredDefaults | None = None


class AnsweredConfig(Answer):
    """The settings of one built-in tool."""

    type: BuiltIn
    name: BuiltIn
    enabled: bool
    permission_policy: AnsweredPolicy
    policy_from: Literal["tool", "toolset", "default"] = "tool"
    """The origin of the policy. For `default`, the policies of the agent and of the workspace come first."""
    approval: AnsweredApproval | None = None


class AnsweredToolset(Answer):
    """The built-in tools, each with all its settings."""

    type: Literal["agent_toolset_20260401"]
    default_config: AnsweredDefault
    configs: list[AnsweredConfig]


class AnsweredCustom(Answer):
    """A tool that the client runs."""

    type: Literal["custom"]
    name: str
    description: str
    input_schema: dict[str, Any]
    permission_policy: AnsweredPolicy | None = None
    approval: AnsweredApproval | None = None
    result_timeout_seconds: float | None = None


class AnsweredServer(Answer):
    """An MCP server, or a toolset of this server's operator."""

    type: Literal["url"]
    name: str = Field(examples=["billing"])
    url: str = Field(examples=["assent:billing"])


class AnsweredServerDefault(AnsweredDefault):
    """The settings of every tool of an MCP server without settings of its own."""

    policy_from: Literal["toolset", "default"]
    """The origin of the policy. For `default`, the policies of the agent and of the workspace come first."""


class AnsweredServerConfig(Answer):
    """The settings of one tool of an MCP server."""

    name: str
    enabled: bool
    permission_policy: AnsweredPolicy
    policy_from: Literal["tool", "toolset", "default"]
    approval: AnsweredApproval | None = None


class AnsweredServerToolset(Answer):
    """The tools of an MCP server. `configs` lists the tools with settings of their own."""

    type: Literal["mcp_toolset"]
    mcp_server_name: str
    default_config: AnsweredServerDefault
    configs: list[AnsweredServerConfig]


_TOOLSET = {
    "type": "mcp_toolset",
    "mcp_server_name": "billing",
    "default_config": {"enabled": True, "permission_policy": {"type": "always_ask"}, "policy_from": "default"},
    "configs": [],
}
AnsweredTool = Annotated[AnsweredToolset | AnsweredServerToolset | AnsweredCustom, Field(discriminator="type")]


class AnsweredEffort(Answer):
    """How hard the model works."""

    type: Level


class AnsweredModel(Answer):
    """The model that the agent uses."""

    id: str = Field(examples=["claude-opus-5-5"])
    effort: AnsweredEffort | None = None
    fallbacks: list[str] | None = None
    """The models to try in this order while the model `id` does not answer."""
    exclude_providers: list[str] | None = None
    """The providers that are never used for this agent."""


class AgentBody(Answer):
    """The fields of agents, and of the agents of sessions."""

    id: AgentId
    type: Literal["agent"]
    version: int
    name: str = Field(examples=["Refunds"])
    description: str | None = Field(examples=["Answers questions about refunds."])
    model: SerializeAsAny[AnsweredModel]
    system: str | None = Field(examples=["You handle refunds."])
    tools: SerializeAsAny[list[AnsweredTool]] = Field(examples=[[_TOOLSET]])
    permission_policy: SerializeAsAny[AnsweredPolicy | None] = None
    approval: SerializeAsAny[AnsweredDefaults | None] = None
    max_turns: int | None
    disable_parallel_tool_use: bool = False
    """Whether the model calls at most one tool per turn."""
    completion_approvals: Literal["text", "tools"] = "text"
    """How clients of `/v1/chat/completions` are asked for approvals."""
    chat_approvals: bool = False
    """Whether chat words decide approvals, in sessions that do not say so themselves."""
    mcp_servers: SerializeAsAny[list[AnsweredServer]]
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
    def of(cls, row: rows.Agent, version: rows.AgentVersion) -> Self:
        """Return an agent at one of its versions."""
        changed = row.updated_at if version.version == row.version else version.created_at
        return cls.stored(
            **version.body,
            id=row.id,
            type="agent",
            version=version.version,
            created_at=row.created_at,
            updated_at=changed,
            archived_at=row.archived_at,
        )


class SessionAgent(AgentBody):
    """The agent as it was when the session was created, with the session's overrides."""
