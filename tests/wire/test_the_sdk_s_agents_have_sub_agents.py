"""Rosters in both forms, of agents and of sessions, through the strict SDK."""

from typing import Any

from anthropic import Anthropic
from doors.served import MODEL

NEW_FORM: Any = {"type": "multiagent_20261001"}


def test_both_forms_of_a_roster_are_the_sdk_s(sdk: Anthropic) -> None:
    reader = sdk.beta.agents.create(name="Reader", model=MODEL)
    agents: Any = [reader.id, {"type": "self"}]
    lead = sdk.beta.agents.create(name="Lead", model=MODEL, multiagent={"type": "coordinator", "agents": agents})
    assert lead.multiagent
    assert lead.multiagent.type == "coordinator"
    assert [(agent.id, agent.version) for agent in lead.multiagent.agents if agent.type == "agent"] == [
        (reader.id, 1),
        (lead.id, 1),
    ]
    other = sdk.beta.agents.update(lead.id, version=1, multiagent=NEW_FORM | {"subagents": {"type": "enabled"}})
    assert other.multiagent
    assert other.multiagent.type == "multiagent_20261001"
    assert (other.multiagent.workflows.type, other.multiagent.advisor.type) == ("disabled", "disabled")
    assert [agent.id for agent in sdk.beta.agents.list()] == [lead.id, reader.id]
    assert [version.version for version in sdk.beta.agents.versions.list(lead.id)] == [2, 1]


def test_a_session_shows_its_roster_whole(sdk: Anthropic) -> None:
    reader = sdk.beta.agents.create(name="Reader", model=MODEL, system="Read.")
    sub_agents: Any = {"type": "enabled", "predefined_agents": [reader.id]}
    lead = sdk.beta.agents.create(name="Lead", model=MODEL, multiagent=NEW_FORM | {"subagents": sub_agents})
    environment_id = next(iter(sdk.beta.environments.list())).id
    session = sdk.beta.sessions.create(agent=lead.id, environment_id=environment_id)
    assert session.agent.multiagent
    assert session.agent.multiagent.type == "multiagent_20261001"
    assert session.agent.multiagent.subagents.type == "enabled"
    [whole] = session.agent.multiagent.subagents.predefined_agents
    assert (whole.id, whole.system) == (reader.id, "Read.")
