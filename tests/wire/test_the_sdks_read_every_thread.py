"""Both SDKs list, stream and archive the threads of a session, the Python one strictly, and decide for all of them."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from doors.served import MODEL, confirmation, key, message
from rows.crew import send
from rows.stage import Stage, call, say
from rows.threads import Child
from wire.running import SECONDS, begin

FIRST: Any = message("Go.")
ASKS: Any = {"type": "agent_toolset_20260401"}


@pytest.fixture
def child(sdk: Anthropic, stage: Stage) -> Child:
    """A thread that the own thread of a session began. Both have a message to read."""
    return Child(stage, begin(sdk, sdk.beta.environments.list().data[0].id, ASKS))


def shown(event: Any) -> list[Any]:
    """What both SDKs are compared by."""
    return [event.type, getattr(event, "session_thread_id", None), getattr(event, "agent_name", None)]


def by_python(sdk: Anthropic, child: Child) -> dict[str, Any]:
    """Read what npm/threads.mjs reads. The client's key has sent nothing, so its streams begin at the end."""
    sessions, of_session = sdk.beta.sessions, {"session_id": child.session_id}
    thread = sessions.threads.retrieve(child.id, **of_session)
    assert thread.agent.type != "advisor"
    with sessions.threads.events.stream(child.id, **of_session) as stream:
        streamed = [shown(event) for event in stream]
    return {
        "listed": [each.id for each in sessions.threads.list(child.session_id, limit=1)],
        "ended": [each.id for each in sessions.threads.list(child.session_id, statuses=["terminated"])],
        "agent": [thread.agent.name, thread.agent.type],
        "streamed": streamed,
        "events": [shown(event) for event in sessions.threads.events.list(child.id, **of_session, limit=5)],
        "session": [shown(event) for event in sessions.events.list(child.session_id, limit=5)],
        "archived": sessions.threads.archive(child.id, **of_session).status,
    }


def test_both_sdks_read_the_same(api: str, sdk: Anthropic, stage: Stage, child: Child, npm_sdk: Path) -> None:
    asked = child.propose()
    stage.confirm(child.session_id, asked.id, "deny")
    child.reply(say("Done."))
    with pytest.raises(anthropic.ConflictError, match="running"):
        sdk.beta.sessions.threads.archive(stage.thread(child.session_id).id, session_id=child.session_id)
    assert sdk.beta.sessions.threads.archive(child.id, session_id=child.session_id).status == "terminated"
    command = ["node", "threads.mjs", child.session_id, child.id]
    env = os.environ | {"ASSENT_URL": api, "ASSENT_API_KEY": key(stage)}
    npm = subprocess.run(command, cwd=npm_sdk, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert npm.returncode == 0, npm.stderr
    with Anthropic(api_key=key(stage), base_url=api, max_retries=0, _strict_response_validation=True) as reading:
        seen = by_python(reading, child)
    assert json.loads(npm.stdout) == seen
    assert seen["listed"] == [stage.thread(child.session_id).id, child.id]
    assert seen["streamed"] == [["session.thread_status_terminated", child.id, "Child"]]
    assert ["agent.tool_use", child.id, None] in seen["session"]
    assert ["agent.tool_use", None, None] in seen["events"]


def test_a_thread_shows_the_agent_that_works_in_it(sdk: Anthropic, stage: Stage) -> None:
    reader = sdk.beta.agents.create(name="Reader", model=MODEL)
    sub_agents: Any = {"type": "enabled", "predefined_agents": [reader.id], "inline_agents": {"type": "enabled"}}
    multiagent: Any = {"type": "multiagent_20261001", "subagents": sub_agents}
    lead = sdk.beta.agents.create(name="Lead", model=MODEL, tools=[ASKS], multiagent=multiagent)
    environment_id = sdk.beta.environments.list().data[0].id
    session_id = sdk.beta.sessions.create(agent=lead.id, environment_id=environment_id, initial_events=[FIRST]).id
    inline = {"name": "Poet", "description": "Writes poems.", "system": "You write poems.", "tools": ["read"]}
    stage.reply(session_id, send("Reader"), send(inline))
    own, of_roster, of_lead = (thread.agent for thread in sdk.beta.sessions.threads.list(session_id))
    assert (own.type, of_roster.type, of_lead.type) == ("agent", "agent", "inline")
    assert of_roster.id == reader.id
    assert (of_lead.name, of_lead.system) == ("Poet", "You write poems.")
    assert [tool.type for tool in of_lead.tools] == ["agent_toolset_20260401"]
    created = [event for event in sdk.beta.sessions.events.list(session_id) if event.type == "session.thread_created"]
    assert [event.agent_name for event in created] == ["Reader", "Poet"]


def test_a_client_that_knows_no_threads_decides_every_ask(sdk: Anthropic, stage: Stage, child: Child) -> None:
    """It reads the session's events, and confirms each id for which the session waits."""
    session_id, sibling = child.session_id, Child(stage, child.session_id, "Sibling")
    of_children = [*child.reply(call()), *sibling.reply(call())]
    asked = [*stage.reply(session_id, call()), *of_children]
    *seen, idle = sdk.beta.sessions.events.list(session_id, limit=1000)
    assert idle.type == "session.status_idle"
    assert idle.stop_reason.type == "requires_action"
    assert idle.stop_reason.event_ids == [each.id for each in asked]
    assert {each.id for each in asked} <= {event.id for event in seen}, "the client has seen each call"
    allow: Any = [confirmation(event_id) for event_id in idle.stop_reason.event_ids]
    sent = sdk.beta.sessions.events.send(session_id, events=allow).data or []
    assert [getattr(event, "session_thread_id", None) for event in sent] == [None, child.id, sibling.id]
    for each in asked:
        stage.run_call(each)
    stage.check(session_id)
