"""Rosters: the sub-agents that an agent may begin, by the field `multiagent` of its body.

The field is null, or has every default filled in. Each agent but `self` is named with its version, so that a roster never changes:

    {"type": "coordinator", "agents": [{"type": "agent", "id": str, "version": int} | {"type": "self"}, ...]}
    {"type": "multiagent_20261001", "workflows": {"type": "disabled"}, "advisor": {"type": "disabled"},
     "subagents": {"type": "disabled"} | {"type": "enabled", "predefined_agents": [as above],
                                          "inline_agents": {"type": "enabled" | "disabled"}}}
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from models.database.rows import Db
from models.workspace.agent import AgentVersion

Reference = Mapping[str, Any]
SELF = "self"


@dataclass(frozen=True)
class Member:
    """An agent of a roster."""

    id: str
    version: int
    name: str
    description: str | None


def references(multiagent: Mapping[str, Any] | None) -> list[Reference]:
    """Return the agents that the field `multiagent` names, in order."""
    if not multiagent:
        return []
    if multiagent["type"] == "coordinator":
        return list(multiagent["agents"])
    return list(multiagent["subagents"].get("predefined_agents") or ())


def allows_inline_agents(multiagent: Mapping[str, Any] | None) -> bool:
    """True if the agent may define sub-agents itself."""
    sub_agents = (multiagent or {}).get("subagents") or {}
    inline: str = (sub_agents.get("inline_agents") or {}).get("type", "disabled")
    return inline == "enabled"


def has_sub_agents(agent: Mapping[str, Any]) -> bool:
    """True if the agent may begin sub-agents, and so has the tools for it."""
    multiagent = agent.get("multiagent")
    return bool(references(multiagent)) or allows_inline_agents(multiagent)


def members(db: Db, agent: Mapping[str, Any]) -> list[Member]:
    """Return the roster of a session's `agent`. `self` is that agent."""
    rows = []
    for reference in references(agent.get("multiagent")):
        if reference["type"] == SELF:
            rows.append(Member(agent["id"], agent["version"], agent["name"], agent.get("description")))
        else:
            body = AgentVersion.of_session(db, reference["id"], reference["version"]).body
            rows.append(Member(reference["id"], reference["version"], body["name"], body.get("description")))
    return rows


def archived(db: Db, of: Iterable[Member]) -> set[str]:
    """Return the ids of those of these agents that are archived. They begin no threads."""
    return {id_ for (id_,) in db.rows(_ARCHIVED, ids=[member.id for member in of])}


_ARCHIVED = "SELECT id FROM agent WHERE id = ANY(%(ids)s) AND archived_at IS NOT NULL"


def bodies(db: Db, agent: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the bodies of the other agents in the roster of a session's `agent`."""
    others = [reference for reference in references(agent.get("multiagent")) if reference["type"] != SELF]
    return [AgentVersion.of_session(db, reference["id"], reference["version"]).body for reference in others]


def at_versions(version: AgentVersion) -> dict[str, Any] | None:
    """Return the field `multiagent` of an agent's version for the agent's readers, who see `self` as that version."""
    itself = {"type": "agent", "id": version.agent_id, "version": version.version}
    return _mapped(version.body.get("multiagent"), lambda reference: itself if reference["type"] == SELF else dict(reference))


def with_bodies(db: Db, agent: dict[str, Any]) -> dict[str, Any]:
    """Return a session's `agent` with the whole agents of its roster, for the session's readers."""

    def body(reference: Reference) -> dict[str, Any]:
        if reference["type"] == SELF:
            return _alone(agent)
        return _alone(AgentVersion.of_session(db, reference["id"], reference["version"]).snapshot())

    return {**agent, "multiagent": _mapped(agent.get("multiagent"), body)}


def _alone(agent: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent without the field `multiagent`."""
    return {name: value for name, value in agent.items() if name != "multiagent"}


def _mapped(multiagent: Mapping[str, Any] | None, change: Callable[[Reference], dict[str, Any]]) -> dict[str, Any] | None:
    """Return the field `multiagent` with each reference changed."""
    if not multiagent:
        return None
    agents = [change(reference) for reference in references(multiagent)]
    if multiagent["type"] == "coordinator":
        return {**multiagent, "agents": agents}
    sub_agents = multiagent["subagents"]
    return {
        **multiagent,
        "subagents": {**sub_agents, "predefined_agents": agents} if "predefined_agents" in sub_agents else sub_agents,
    }
