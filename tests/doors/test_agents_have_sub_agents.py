"""An agent names its sub-agents, at versions that never change, in both forms of the field `multiagent`."""

from typing import Any

import pytest
from doors.served import MODEL, Caller, bad, good
from own_database import Clock
from people import group, member
from rows.crew import Crew, send
from rows.stage import Stage

OFF, ON, SELF = {"type": "disabled"}, {"type": "enabled"}, {"type": "self"}
NEW_FORM = "multiagent_20261001"


def coordinator(*agents: Any) -> dict[str, Any]:
    """The field in its first form."""
    return {"type": "coordinator", "agents": list(agents)}


def reference(agent: dict[str, Any], version: int = 1) -> dict[str, Any]:
    """An agent in a roster."""
    return {"type": "agent", "id": agent["id"], "version": version}


def enabled(*agents: Any, inline: dict[str, str] = ON) -> dict[str, Any]:
    """The field `subagents` of a response."""
    return ON | {"predefined_agents": list(agents), "inline_agents": inline}


def test_a_roster_comes_back_with_versions(caller: Caller) -> None:
    reader, writer = caller.agent(name="Reader"), caller.agent(name="Writer")
    good(caller.post(f"/v1/agents/{writer['id']}", json={"system": "Write."}))
    pinned = {"type": "agent", "id": writer["id"], "version": 1}
    lead = caller.agent(name="Lead", multiagent=coordinator(reader["id"], pinned, SELF))
    assert lead["multiagent"] == coordinator(reference(reader), pinned, reference(lead))
    later = good(caller.post(f"/v1/agents/{lead['id']}", json={"system": "Lead."}))
    assert later["multiagent"]["agents"][2] == reference(lead, 2), "its own copy is at its own version"


def test_an_agent_without_a_version_is_the_newest_when_the_roster_is_saved(caller: Caller) -> None:
    reader = caller.agent(name="Reader")
    lead = caller.agent(name="Lead", multiagent=coordinator(reader["id"]))
    good(caller.post(f"/v1/agents/{reader['id']}", json={"system": "Read."}))
    assert good(caller.get(f"/v1/agents/{lead['id']}"))["multiagent"] == coordinator(reference(reader, 1))


@pytest.mark.parametrize("sent", [{}, {"subagents": None}, {"subagents": ON}, {"workflows": None, "advisor": OFF}])
def test_the_new_form_allows_inline_agents_by_default(caller: Caller, sent: dict[str, Any]) -> None:
    lead = caller.agent(multiagent={"type": NEW_FORM} | sent)
    assert lead["multiagent"] == {"type": NEW_FORM, "subagents": enabled(), "workflows": OFF, "advisor": OFF}


def test_an_update_of_the_same_form_keeps_what_it_leaves_out(caller: Caller) -> None:
    reader = caller.agent(name="Reader")
    lead = caller.agent(name="Lead", multiagent={"type": NEW_FORM, "subagents": ON | {"predefined_agents": [reader["id"]]}})

    def updated(**multiagent: Any) -> Any:
        agent = good(caller.post(f"/v1/agents/{lead['id']}", json={"multiagent": {"type": NEW_FORM} | multiagent}))
        return agent["multiagent"]["subagents"]

    assert updated() == enabled(reference(reader))
    assert updated(subagents=ON | {"inline_agents": OFF}) == enabled(reference(reader), inline=OFF)
    assert updated(subagents=ON | {"predefined_agents": [reader["id"], SELF]}) == enabled(
        reference(reader), reference(lead, 3), inline=OFF
    )
    assert updated(subagents=ON | {"inline_agents": None, "predefined_agents": None}) == enabled()
    assert updated(subagents=OFF) == OFF
    assert updated(subagents=ON) == enabled(), "an object of another type replaces the stored one"
    assert updated(subagents=None) == enabled()
    assert good(caller.post(f"/v1/agents/{lead['id']}", json={"multiagent": None}))["multiagent"] is None


def test_a_roster_that_cannot_be_is_refused(caller: Caller) -> None:
    reader = caller.agent(name="Reader")
    lead = caller.agent(name="Lead", multiagent=coordinator(reader["id"]))
    archived = caller.agent(name="Old")
    good(caller.post(f"/v1/agents/{archived['id']}/archive", json={}))
    namesake = caller.agent(name="reader")
    tool = {"type": "custom", "name": "send_to_agent", "description": "d", "input_schema": {"type": "object"}}

    def refused(multiagent: dict[str, Any], *words: str, **more: Any) -> None:
        body = {"name": "Agent", "model": MODEL, "multiagent": multiagent} | more
        bad(caller.post("/v1/agents", json=body), 400, *words)

    refused(coordinator(), "multiagent", "agents")
    refused(coordinator(*[reader["id"]] * 21), "multiagent", "agents")
    refused(coordinator("agent_missing"), "multiagent.agents.0", "not found")
    refused(coordinator(reference(reader, 7)), "multiagent.agents.0", "version")
    refused(coordinator(archived["id"]), "multiagent.agents.0", "archived")
    refused(coordinator(lead["id"]), "multiagent.agents.0", "sub-agents of its own")
    refused(coordinator(reader["id"], reference(reader)), "multiagent.agents.1", "named twice")
    refused(coordinator(SELF, SELF), "multiagent.agents.1", "named twice")
    refused(coordinator(reader["id"], namesake["id"]), "multiagent", "name of two agents")
    refused(coordinator(reader["id"], SELF), "multiagent", "name of two agents", name="READER")
    refused(coordinator(SELF), "multiagent", "reserved", name="self")
    refused({"type": NEW_FORM, "subagents": ON | {"inline_agents": OFF}}, "predefined_agents", "at least one")
    refused({"type": NEW_FORM, "advisor": ON | {"model": MODEL}}, "multiagent.advisor", "not supported")
    refused({"type": NEW_FORM, "workflows": ON}, "multiagent.workflows", "not supported")
    refused(coordinator(reader["id"]), "tools.0.name", "send_to_agent", tools=[tool])
    bad(caller.post(f"/v1/agents/{lead['id']}", json={"multiagent": coordinator(lead["id"], SELF)}), 400, "multiagent.agents.0")
    bad(caller.post(f"/v1/agents/{lead['id']}", json={"name": "Lead", "tools": [tool]}), 400, "tools.0.name")


def test_a_roster_whose_calls_nobody_could_allow_is_refused(caller: Caller, stage: Stage) -> None:
    leads, readers = group(stage, "leads"), group(stage, "readers")
    member(stage, groups=[leads])
    member(stage, groups=[readers])
    by_readers = caller.agent(name="Reader", approval={"approvers": [f"group:{readers}"]})
    by_edits = caller.agent(name="Writer", approval={"options": ["edit"]})
    lead = {"name": "Lead", "model": MODEL, "multiagent": coordinator(by_readers["id"], by_edits["id"])}
    for approval, why in (
        ({"approvers": [f"group:{leads}"]}, "multiagent: sub-agent Reader, approval: 0 people are in"),
        (
            {"options": ["once"]},
            "multiagent: sub-agent Writer, approval: its settings and those of this agent together leave nothing",
        ),
    ):
        bad(caller.post("/v1/agents", json=lead | {"approval": approval}), 400, why)
    member(stage, groups=[leads, readers])
    good(caller.post("/v1/agents", json=lead | {"approval": {"approvers": [f"group:{leads}"]}}))
    plain = caller.agent(name="Lead", multiagent=coordinator(by_edits["id"]))
    bad(caller.post(f"/v1/agents/{plain['id']}", json={"approval": {"options": ["once"]}}), 400, "sub-agent Writer")


def test_a_session_shows_its_agents_whole(caller: Caller) -> None:
    reader = caller.agent(name="Reader", system="Read.")
    lead = caller.agent(name="Lead", multiagent=coordinator(reader["id"], SELF))
    session = caller.session(agent=lead)
    first, itself = session["agent"]["multiagent"]["agents"]
    assert (first["id"], first["system"], first["name"]) == (reader["id"], "Read.", "Reader")
    assert itself == {name: value for name, value in session["agent"].items() if name != "multiagent"}
    assert "multiagent" not in first
    tool = {"type": "custom", "name": "list_agents", "description": "d", "input_schema": {"type": "object"}}
    bad(caller.post(f"/v1/sessions/{session['id']}", json={"agent": {"tools": [tool]}}), 400, "agent.tools.0.name")


def test_the_time_of_threads_that_run_at_once_counts_once_or_for_each(caller: Caller, stage: Stage, clock: Clock) -> None:
    """A session's usage has the time in which it ran, and its stats have the sum of its threads' times."""
    crew = Crew.begin(stage)
    crew.lead_replies(send("Reader"), send("Writer"))
    clock.advance(100)
    session = good(caller.get(f"/v1/sessions/{crew.session_id}"))
    assert session["usage"]["active_seconds"] == pytest.approx(100, abs=10)
    assert session["stats"]["active_seconds"] == pytest.approx(300, abs=20)
    [listed] = good(caller.get("/v1/sessions"))["data"]
    assert listed["stats"]["active_seconds"] == pytest.approx(300, abs=20)
    threads = good(caller.get(f"/v1/sessions/{crew.session_id}/threads"))["data"]
    assert [thread["stats"]["active_seconds"] for thread in threads] == [pytest.approx(100, abs=10)] * 3


@pytest.mark.parametrize(
    "kind", ["agent.thread_message_received", "agent.thread_message_sent", "session.thread_created", "agent.tool_use"]
)
def test_no_client_acts_as_an_agent(caller: Caller, stage: Stage, kind: str) -> None:
    """A forged event, or a forged result of a sub-agent's call, begins no thread and sends no message."""
    crew = Crew.begin(stage)
    text = [{"type": "text", "text": "Do it."}]
    fields = {"content": text, "to_session_thread_id": crew.lead.id, "agent_name": "Reader", "name": "send_to_agent", "input": {}}
    before = len(stage.events(crew.session_id))
    bad(caller.tell(crew.session_id, {"type": kind} | fields), 400, "events.0")
    assert (len(stage.events(crew.session_id)), crew.threads) == (before, [])


def test_no_client_answers_for_a_tool_of_sub_agents(caller: Caller, stage: Stage) -> None:
    crew = Crew.begin(stage)
    [spawn] = crew.lead_replies(send("Reader"))
    for kind, field in (("user.tool_result", "tool_use_id"), ("user.custom_tool_result", "custom_tool_use_id")):
        event = {"type": kind, field: spawn.id, "content": [{"type": "text", "text": "Done."}]}
        bad(caller.tell(crew.session_id, event), 400, "events.0")
