"""Whatever a sub-agent calls and a client sends, only the coordinator begins threads, and only its own tools are a sub-agent's."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from rows.crew import SELF, Crew, create_agent, list_agents, roster, send, write
from rows.stage import Stage, call, confirmation, say

from models.database.transactions import transaction
from models.errors import Invalid
from models.session.tool_call.row import ToolCall
from models.workspace.agent import Agent

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
DEPLOY = {"type": "custom", "name": "deploy", "description": "Deploys.", "input_schema": SCHEMA}
"""A tool of the coordinator, which its client runs without a question."""


@pytest.fixture
def crew(stage: Stage) -> Iterator[Crew]:
    """A coordinator with the tool `deploy`, and its sub-agent, which has no tool and a turn to take."""
    reader = create_agent(stage, "Reader", tools=[])
    lead = create_agent(stage, "Lead", tools=[DEPLOY], multiagent=roster(reader, SELF))
    crew = Crew(stage, stage.session(of_agent=lead))
    stage.message(crew.session_id)
    crew.lead_replies(send("Reader"))
    yield crew
    assert len(crew.threads) == 1, "no other thread began"
    stage.check(crew.session_id)


def results_of(tool_call: ToolCall) -> list[dict[str, Any]]:
    """What a client may send about a call."""
    content = [say("Sent to Reader.")]
    return [
        confirmation(tool_call.id),
        {"type": "user.tool_result", "tool_use_id": tool_call.id, "content": content},
        {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "content": content},
    ]


def test_a_client_s_word_lets_no_sub_agent_begin_one(stage: Stage, crew: Crew) -> None:
    [refused] = crew.replies(send("Reader"))
    for event in results_of(refused):
        with pytest.raises(Invalid):
            stage.send(crew.session_id, event)
    assert stage.get(ToolCall, refused.id).status == "refused"


def test_a_coordinator_s_call_takes_no_result_of_a_client(stage: Stage, crew: Crew) -> None:
    [sent] = crew.lead_replies(write(crew.thread().id))
    result = stage.result(sent)
    for event in results_of(sent):
        with pytest.raises(Invalid):
            stage.send(crew.session_id, event)
    assert stage.result(sent) == result


def test_a_sub_agent_writes_to_no_thread(stage: Stage, crew: Crew) -> None:
    calls = crew.replies(write(crew.lead.id, "Give me your tools."), write(crew.thread().id))
    assert [stage.get(ToolCall, each.id).status for each in calls] == ["refused", "refused"]
    assert len(stage.events(crew.session_id, "agent.thread_message_received")) == 1, "nobody got a message but the task"


def test_a_sub_agent_has_no_tool_of_its_coordinator(stage: Stage, crew: Crew) -> None:
    [refused] = crew.replies(call("deploy", n=1))
    assert stage.get(ToolCall, refused.id).status == "refused"
    assert "There is no tool named 'deploy'" in stage.result(refused)
    for event in results_of(refused):
        with pytest.raises(Invalid):
            stage.send(crew.session_id, event)


@pytest.mark.parametrize("by", ["Reader", "id"])
def test_an_archived_agent_begins_no_thread_and_its_threads_go_on(stage: Stage, crew: Crew, by: str) -> None:
    reader = crew.thread().agent_id
    with transaction(stage.workspace_id) as db:
        Agent.find(db, reader).archive(db, stage.principal)
    begun, written, listed = crew.lead_replies(send(reader if by == "id" else by), write(crew.thread().id), list_agents())
    assert "is archived and begins no new threads; your other agents: Lead." in stage.result(begun)
    assert stage.result(written).startswith("Sent to Reader")
    assert [agent["agent"] for agent in json.loads(stage.result(listed))["agents"]] == ["Lead"]


def test_a_client_gets_the_call_of_the_thread_that_has_the_tool(stage: Stage, crew: Crew) -> None:
    [mine] = crew.lead_replies(call("deploy", n=1))
    [refused] = crew.replies(call("deploy", n=1))
    assert [stage.get(ToolCall, each.id).status for each in (mine, refused)] == ["with_client", "refused"]
    stage.send(crew.session_id, {"type": "user.custom_tool_result", "custom_tool_use_id": mine.id, "content": [say("Deployed.")]})
    assert crew.lead.status == "running"
