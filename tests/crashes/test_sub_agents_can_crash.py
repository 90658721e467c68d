"""A process may die as it begins a sub-agent, stores a report, or stores the decision that begins one: each happens once."""

import json
from dataclasses import asdict

import pytest
from crashes.boundaries import of
from crashes.invariants import Seen
from crashes.journey import EFFECT, Journey, send_task
from rows.crew import create_agent, roster
from rows.stage import rules

CHECKPOINT, DECISION = of("checkpoint")[:2], of("receive")[:2]
"""Both sides of the commits."""
TASK = {"agent": "Reader", "message": f"{EFFECT}\nthen\nsay say The end."}
"""The sub-agent's report is the script of the coordinator's next run."""
LAST = "The end."


def begin(journey: Journey, policy: dict[str, object] | None = None) -> None:
    """Have a coordinator give a task to a sub-agent, whose call waits for people."""
    reader = create_agent(journey.stage, "Reader")
    lead = create_agent(journey.stage, "Lead", multiagent=roster(reader), permission_policy=policy)
    journey.begin(of_agent=lead).say(f"call send_to_agent {json.dumps(TASK)}", "then", "say I wait.")


def until_reported(journey: Journey) -> Seen:
    """Wait until the coordinator has answered the report. Returns the rows."""
    seen = journey.until(lambda seen: [e for e in seen.of("agent.message") if e.body["content"][0]["text"] == LAST])
    assert [thread.name for thread in seen.threads] == ["Lead", "Reader"], "one sub-agent began"
    assert len(seen.of("agent.thread_message_sent")) == 2, "one task and one report"
    assert [turn.status for turn in seen.turns] == ["done"] * len(seen.turns)
    assert journey.effects() == 1
    return journey.until_idle()


@pytest.mark.parametrize("boundary", CHECKPOINT)
def test_a_sub_agent_begins_once(journey: Journey, boundary: str) -> None:
    """The worker dies around the checkpoint whose call begins it."""
    journey.armed.at(boundary)
    begin(journey)
    journey.until_crashed()
    journey.decide(result="allow")
    until_reported(journey)


@pytest.mark.parametrize("boundary", CHECKPOINT)
def test_a_report_arrives_once(journey: Journey, boundary: str) -> None:
    """The worker dies around the checkpoint of the sub-agent's last turn."""
    begin(journey)
    approval = journey.until_asked()
    journey.until(lambda seen: seen.threads[0].status == "idle")
    journey.armed.at(boundary)
    journey.stage.decide(approval, result="allow")
    journey.until_crashed()
    until_reported(journey)


@pytest.mark.parametrize("boundary", DECISION)
def test_a_decision_begins_a_sub_agent_once(journey: Journey, boundary: str) -> None:
    """The process that takes the decision dies around its commit, and the client sends the decision again."""
    begin(journey, rules(("ask", "send_to_agent"), default="allow"))
    call_id = journey.until_asked().tool_call_id or ""
    assert len(journey.look().threads) == 1, "nothing begins before a person allows it"
    journey.armed.at(boundary)
    who = asdict(journey.stage.principal) | {"scopes": []}
    allow = {"type": "user.tool_confirmation", "tool_use_id": call_id, "result": "allow"}
    send_task("door.receive", journey.session_id, who, [allow])
    journey.until_crashed()
    journey.stage.confirm(journey.session_id, call_id)
    journey.decide(result="allow")
    until_reported(journey)
