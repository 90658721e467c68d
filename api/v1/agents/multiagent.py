"""The field `multiagent` in requests: which sub-agents an agent may begin. `models.workspace.roster` describes its normal form."""

from collections.abc import Container, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from api.door.requests import Body, Id, Version
from models.database.rows import Db
from models.errors import Invalid
from models.policy.sub_agent_tools import TOOLS
from models.workspace.agent import Agent, AgentVersion
from models.workspace.roster import SELF, has_sub_agents, references

MAX_AGENTS = 20
DISABLED = {"type": "disabled"}
_UNSUPPORTED = 'is not supported by this server: leave it out, or send {"type": "disabled"}.'


class AgentReference(Body):
    """An agent at a version, by default the newest version at this moment."""

    type: Literal["agent"]
    id: Id
    version: Version | None = None


class SelfReference(Body):
    """The agent that has this configuration. Its sub-agent cannot begin sub-agents."""

    type: Literal["self"]


class AdvisorReference(Body):
    """An advisor, which this server does not support."""

    type: Literal["advisor"]
    model: Id


def _as_reference(value: Any) -> Any:
    return {"type": "agent", "id": value} if isinstance(value, str) else value


_Predefined = Annotated[AgentReference | SelfReference, Field(discriminator="type")]
_Entry = Annotated[AgentReference | SelfReference | AdvisorReference, Field(discriminator="type")]
Predefined = Annotated[_Predefined, BeforeValidator(_as_reference, json_schema_input_type=Id | _Predefined)]
Entry = Annotated[_Entry, BeforeValidator(_as_reference, json_schema_input_type=Id | _Entry)]


class Coordinator(Body):
    """The agents that this agent may begin as sub-agents."""

    type: Literal["coordinator"]
    agents: list[Entry] = Field(min_length=1, max_length=MAX_AGENTS)


class Enabled(Body):
    """Allowed."""

    type: Literal["enabled"]


class Disabled(Body):
    """Not allowed."""

    type: Literal["disabled"]


_Switch = Annotated[Enabled | Disabled, Field(discriminator="type")]


class SubAgents(Body):
    """The agent may begin sub-agents: predefined agents, and inline agents, which it defines itself and which are not saved."""

    type: Literal["enabled"]
    inline_agents: _Switch | None = Field(None, description="Whether the agent may define inline agents. Default: enabled.")
    predefined_agents: list[Predefined] | None = Field(None, max_length=MAX_AGENTS)


class Workflows(Body):
    """Workflows, which this server does not support."""

    type: Literal["enabled"]
    inline_agents: _Switch | None = None
    predefined_agents: list[Predefined] | None = Field(None, max_length=MAX_AGENTS)


class Advisor(Body):
    """An advisor, which this server does not support."""

    type: Literal["enabled"]
    model: Id


class Multiagent(Body):
    """Which sub-agents the agent may begin. An update of the same type keeps what it leaves out, at each level."""

    type: Literal["multiagent_20261001"]
    subagents: Annotated[SubAgents | Disabled, Field(discriminator="type")] | None = Field(None, description="Default: enabled.")
    workflows: Annotated[Workflows | Disabled, Field(discriminator="type")] | None = Field(
        None, description="Workflows are not supported. Left out: disabled."
    )
    advisor: Annotated[Advisor | Disabled, Field(discriminator="type")] | None = Field(
        None, description="Advisors are not supported. Left out: disabled."
    )


MultiagentParams = Annotated[Coordinator | Multiagent, Field(discriminator="type")]


def normal_multiagent(
    db: Db, params: Coordinator | Multiagent | None, agent: Mapping[str, Any], before: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the field in normal form, each agent with its version. Raises Invalid.

    `agent` is the agent after the request, with its `id` if it has one; `before` is the field's present value.
    """
    if params is None:
        return None
    if isinstance(params, Coordinator):
        return {"type": params.type, "agents": _at_versions(db, params.agents, "multiagent.agents", agent)}
    _refuse_unsupported(params)
    same = before is not None and before["type"] == params.type
    sub_agents = _sub_agents(db, params, agent, before["subagents"] if before and same else None)
    return {"type": params.type, "subagents": sub_agents, "workflows": DISABLED, "advisor": DISABLED}


def _refuse_unsupported(params: Multiagent) -> None:
    for field in ("workflows", "advisor"):
        if not isinstance(getattr(params, field), Disabled | None):
            raise Invalid(f"multiagent.{field}", _UNSUPPORTED)


def _sub_agents(db: Db, params: Multiagent, agent: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `subagents` in normal form: what the request leaves out stays as it was before."""
    if before is not None and "subagents" not in params.model_fields_set:
        return dict(before)
    if isinstance(params.subagents, Disabled):
        return DISABLED
    new = params.subagents or SubAgents(type="enabled")
    base: Mapping[str, Any] = before if params.subagents and before and before["type"] == "enabled" else {}
    inline: dict[str, Any] = {"type": new.inline_agents.type if new.inline_agents else "enabled"}
    if "inline_agents" not in new.model_fields_set:
        inline = base.get("inline_agents", inline)
    at = "multiagent.subagents.predefined_agents"
    agents = base.get("predefined_agents")
    if agents is None or "predefined_agents" in new.model_fields_set:
        agents = _at_versions(db, new.predefined_agents or [], at, agent)
    if inline["type"] == "disabled" and not agents:
        raise Invalid(at, "without inline_agents, name at least one agent; or disable subagents.")
    return {"type": "enabled", "inline_agents": inline, "predefined_agents": agents}


def _at_versions(db: Db, entries: list[Any], at: str, agent: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the agents, each with its version. Raises Invalid for an agent that cannot be a sub-agent."""
    agents: list[dict[str, Any]] = []
    for index, entry in enumerate(entries):
        if isinstance(entry, AdvisorReference):
            raise Invalid(f"{at}.{index}", "an advisor is not supported by this server: leave it out.")
        if isinstance(entry, SelfReference):
            agents.append({"type": SELF})
            continue
        row, version = Agent.in_field(db, entry.id, entry.version, field=f"{at}.{index}")
        if row.archived_at:
            raise Invalid(f"{at}.{index}", f"{row.id} is archived; name an agent that is not archived.")
        if has_sub_agents(version.body):
            message = f"{row.id} has sub-agents of its own at version {version.version}; a sub-agent cannot have any."
            raise Invalid(f"{at}.{index}", message)
        agents.append({"type": "agent", "id": row.id, "version": version.version})
    _check_distinct(agents, at, agent.get("id"))
    return agents


def _check_distinct(agents: list[dict[str, Any]], at: str, own_id: str | None) -> None:
    ids = [reference.get("id") or own_id or SELF for reference in agents]
    for index, agent_id in enumerate(ids):
        if agent_id in ids[:index]:
            raise Invalid(f"{at}.{index}", f"{agent_id} is named twice; name each agent once.")


def check_roster(db: Db, agent: Mapping[str, Any], fields: Container[str]) -> None:
    """Raise Invalid unless the agents of the roster have different names, by which a coordinator addresses them.

    `agent` is the agent after the request, `fields` are the request's fields.
    """
    names: list[str] = []
    for name in _names(db, agent):
        if name.casefold() in {SELF, *names}:
            field = "multiagent" if "multiagent" in fields else "name"
            why = "is a reserved name" if name.casefold() == SELF else "is the name of two agents of the roster"
            raise Invalid(field, f"{name!r} {why}; rename one, because the coordinator addresses sub-agents by name.")
        names.append(name.casefold())
    check_tool_names(agent, fields)


def check_tool_names(agent: Mapping[str, Any], fields: Container[str], *, at: str = "") -> None:
    """Raise Invalid if a client's tool has the name of a tool for sub-agents, and the agent has these. `at` is the agent's path."""
    if not has_sub_agents(agent):
        return
    for index, tool in enumerate(agent["tools"]):
        if tool["type"] == "custom" and tool["name"] in TOOLS:
            field = f"{at}tools.{index}.name" if "tools" in fields else f"{at}multiagent"
            raise Invalid(field, f"{tool['name']!r} is a tool of every agent that has sub-agents; rename the client's tool.")


def _names(db: Db, agent: Mapping[str, Any]) -> Iterator[str]:
    for reference in references(agent.get("multiagent")):
        if reference["type"] == SELF:
            yield agent["name"]
        else:
            yield AgentVersion.of_session(db, reference["id"], reference["version"]).body["name"]
