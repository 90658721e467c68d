"""Agents as we answer them, at one of their versions."""

from typing import Annotated, Any, Literal

from pydantic import Field

from api.answers.base import Answer, Empty, Metadata, Time
from api.requests.agents import ServiceAccount
from api.requests.tools import BuiltIn


class AlwaysPolicy(Answer):
    """Every call is allowed, or every call asks."""

    type: Literal["always_allow", "always_ask"]


class AutoPolicy(Answer):
    """Rules, then `default`: how a policy is said that clients have no name for. No call is allowed by the default `deny`."""

    type: Literal["auto"]
    rules: Empty
    default: Literal["deny"]


AnsweredPolicy = Annotated[AlwaysPolicy | AutoPolicy, Field(discriminator="type")]


class AnsweredApproval(Answer):
    """How a person is asked."""

    timeout_seconds: float | None
    prompt: str | None


class AnsweredDefault(Answer):
    """What holds for every tool of the set that says nothing else."""

    enabled: bool
    permission_policy: AnsweredPolicy


class AnsweredConfig(Answer):
    """What holds for one built-in tool."""

    type: BuiltIn
    name: BuiltIn
    enabled: bool
    permission_policy: AnsweredPolicy
    approval: AnsweredApproval | None = None


class AnsweredToolset(Answer):
    """The built-in tools, each spelled out."""

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


AnsweredTool = Annotated[AnsweredToolset | AnsweredCustom, Field(discriminator="type")]


class AnsweredModel(Answer):
    """Which model."""

    id: str


class AgentBody(Answer):
    """What agents and the agents of sessions have in common."""

    id: str
    type: Literal["agent"]
    version: int
    name: str
    description: str | None
    model: AnsweredModel
    system: str | None
    tools: list[AnsweredTool]
    max_turns: int | None
    mcp_servers: Empty
    skills: Empty
    multiagent: None
    execution_identity: ServiceAccount


class Agent(AgentBody):
    """An agent at one of its versions."""

    metadata: Metadata
    created_at: Time
    updated_at: Time
    archived_at: Time | None


class SessionAgent(AgentBody):
    """The agent as it was when the session was created, with the session's overrides."""
