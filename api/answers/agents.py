"""Answers about agents, each at one version."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, SerializeAsAny

from api.answers.base import AgentId, Answer, Empty, Metadata, Time
from api.requests.agents import ServiceAccount
from api.requests.base import without_defaults
from api.requests.models import Level
from api.requests.toolsets import BuiltIn
from models.pure.offer import GrantScope, Option, Widest
from models.pure.policy import Effect
from models.workspace import agent as rows


class AlwaysPolicy(Answer):
    """Every call is allowed, or every call asks."""

    type: Literal["always_allow", "always_ask"]


class AnsweredCondition(Answer):
    """A test of one argument, by one operator."""

    model_config = ConfigDict(json_schema_extra=without_defaults)

    path: str
    equals: Any = None
    one_of: list[Any] = Field([])
    glob: str = ""
    path_glob: str = ""
    regex: str = ""
    gt: float = 0
    gte: float = 0
    lt: float = 0
    lte: float = 0
    min_length: int = 0
    max_length: int = 0
    exists: bool = True
    command: str = ""


class AnsweredMatch(Answer):
    """The calls to which a rule applies."""

    tool: str
    input: list[AnsweredCondition] = Field([])
    input_sha256: str | None = None


class AnsweredRule(Answer):
    """One rule. Its match is a text if a text can express it, else an object."""

    effect: Effect
    match: str | AnsweredMatch = Field(examples=["bash(git push *)"])
    reason: str | None = None
    priority: int = 0


class AutoPolicy(Answer):
    """Rules, then `default` for all other calls."""

    type: Literal["auto"]
    rules: list[AnsweredRule]
    default: Effect
    unknown_programs: Literal["allow"] | None = None
    """`allow` if the rules of this policy may allow unknown programs. Left out by default: then calls of unknown programs ask."""


AnsweredPolicy = Annotated[AlwaysPolicy | AutoPolicy, Field(discriminator="type")]


class AnsweredLevel(Answer):
    """The people who may decide after the previous deadline has passed, and the time that they have."""

    approvers: list[str]
    timeout_seconds: float


class AnsweredDefaults(Answer):
    """The settings of approvals where a tool's own `approval` leaves a field out. Demands on approvers add up over all levels, and
    only an answer that all levels offer is offered."""

    timeout_seconds: float | None = None
    on_timeout: Literal["deny", "end_run", "escalate"] | None = None
    remind_after_seconds: float | None = None
    approvers: list[str] | None = None
    """Who may decide: `user:ID` and `group:ID`."""
    required_approvals: int | None = None
    four_eyes: bool | None = None
    escalate_to: list[AnsweredLevel] | None = None
    then: Literal["deny", "end_run"] | None = None
    options: list[Option] | None = None
    """The answers that people get, beside `deny`."""
    default_scope: GrantScope | None = None
    widest_match: Widest | None = None


class AnsweredApproval(AnsweredDefaults):
    """The settings of the approvals of a tool's calls."""

    on_timeout: Literal["deny", "end_run", "escalate", "allow"] | None = None  # type: ignore[assignment]
    prompt: str | None = None


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
