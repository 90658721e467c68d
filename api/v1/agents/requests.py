"""Requests about agents."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from api.door.examples import IDS
from api.door.requests import (
    Body,
    Created,
    Description,
    Metadata,
    MetadataPatch,
    Name,
    QueryString,
    System,
    Unsupported,
    Version,
    examples,
    not_null,
)
from api.v1.agents.multiagent import MultiagentParams
from api.v1.agents.servers import McpServers, normal_servers
from api.v1.agents.tools import Tools, normal_tools
from api.v1.model import ModelParam
from api.v1.policy.approval_settings import ApprovalDefaults
from api.v1.policy.requests import Policy


class ServiceAccount(Body):
    """The only identity that agents run under."""

    type: Literal["service_account"]


MaxTurns = Annotated[int, Field(ge=1, le=1000)]


class AgentFields(Body):
    """The fields that creating and updating share."""

    description: Description | None = None
    execution_identity: ServiceAccount | None = None
    mcp_servers: McpServers | None = None
    multiagent: MultiagentParams | None = Field(None, description="Which sub-agents the agent may begin.")
    skills: Unsupported = None
    system: System | None = None
    tools: Tools | None = None
    permission_policy: Policy | None = Field(
        None, description="The rules apply to every tool. The default applies to built-in tools without a policy of their own."
    )
    approval: ApprovalDefaults | None = None
    max_turns: MaxTurns | None = None
    disable_parallel_tool_use: bool | None = Field(None, description="Whether the model calls at most one tool per turn.")
    completion_approvals: Literal["text", "tools"] | None = Field(
        None,
        description="How clients of `/v1/chat/completions` are asked for approvals: by sentences (the default), or by calls of"
        " `client_requestApproval`. A request's `metadata.approvals` has precedence.",
    )
    chat_approvals: bool | None = Field(
        None, description="Whether words such as `approve` in a message decide approvals. A session's own value comes first."
    )

    def fields(self) -> dict[str, Any]:
        """Return the shared fields in normal form."""
        return {
            "description": self.description or None,
            "system": self.system or None,
            "tools": normal_tools(self.tools),
            "permission_policy": self.permission_policy,
            "approval": self.approval.normal() if self.approval else None,
            "max_turns": self.max_turns,
            "disable_parallel_tool_use": bool(self.disable_parallel_tool_use),
            "completion_approvals": self.completion_approvals or "text",
            "chat_approvals": bool(self.chat_approvals),
            "mcp_servers": normal_servers(self.mcp_servers),
        }


class AgentCreate(AgentFields):
    """A new agent."""

    model_config = examples(
        {"name": "Helper", "model": "claude-opus-5-5"},
        {"name": "Helper", "model": {"id": "claude-opus-5-5", "effort": "high", "fallbacks": ["claude-sonnet-5-5"]}},
        {
            "name": "Refunds",
            "model": "claude-opus-5-5",
            "system": "You handle refunds.",
            "mcp_servers": [{"type": "url", "name": "billing", "url": "https://mcp.example.com/billing"}],
            "tools": [{"type": "mcp_toolset", "mcp_server_name": "billing"}],
        },
        {
            "name": "Editor",
            "model": "claude-opus-5-5",
            "multiagent": {"type": "coordinator", "agents": [IDS["agent_id"], {"type": "self"}]},
        },
        {
            "name": "Deployer",
            "model": "claude-opus-5-5",
            "tools": [{"type": "agent_toolset_20260401"}],
            "permission_policy": {
                "type": "rules",
                "rules": [
                    {"effect": "deny", "match": "bash(git push --force *)", "reason": "History is never rewritten."},
                    {"effect": "allow", "match": "read"},
                ],
                "default": "ask",
            },
        },
    )

    model: ModelParam
    name: Name
    metadata: Metadata | None = None

    def normal(self) -> dict[str, Any]:
        """Return the body of a version, in which `multiagent` is not resolved yet."""
        return self.fields() | {
            "name": self.name,
            "model": self.model.normal(),
            "skills": [],
            "multiagent": None,
            "execution_identity": {"type": "service_account"},
            "metadata": self.metadata or {},
        }


class AgentUpdate(AgentFields):
    """Changes of an agent. A field that is left out is kept, a list is replaced as a whole, and metadata is a patch."""

    model_config = examples(
        {"version": 1, "system": "You handle refunds. Be brief."},
    )

    model: ModelParam | None = None
    name: Name | None = None
    metadata: MetadataPatch | None = None
    version: Version | None = None

    _no_null = field_validator("model", "name", "version", mode="before")(not_null)

    def changes(self) -> dict[str, Any]:
        """Return the fields that the request sets, in normal form, but for `multiagent`."""
        model = self.model.normal() if self.model else None
        return self.sent(self.fields() | {"name": self.name, "model": model, "metadata": self.metadata or {}})


class AgentQuery(QueryString):
    """GET /v1/agents/{id}."""

    version: Version | None = None


class AgentList(Created):
    """GET /v1/agents."""

    include_archived: bool = False
