"""Sessions are created from a version of an agent, listed, changed, archived and deleted. So are environments."""

from typing import Any

import pytest
from doors.served import MODEL, Caller, bad, good, message
from rows.stage import Stage, call, say

TOOLSET = {"type": "agent_toolset_20260401"}


def test_a_session_keeps_the_agent_as_it_was(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET], max_turns=7)
    session = caller.session(agent)
    good(caller.post(f"/v1/agents/{agent['id']}", json={"name": "New", "tools": []}))
    found = good(caller.get(f"/v1/sessions/{session['id']}"))
    assert (found["agent"]["name"], found["agent"]["version"], found["agent"]["tools"]) == ("Agent", 1, agent["tools"])
    assert (found["status"], found["max_turns"], found["waiting_on"]) == ("idle", 7, [])
    old = caller.session(agent={"id": {"type": "agent", "id": agent["id"], "version": 1}})
    assert old["agent"]["name"] == "Agent"


def test_overrides_replace_fields_for_this_session_only(caller: Caller) -> None:
    agent = caller.agent(system="Be kind.", tools=[TOOLSET])
    over = {"type": "agent_with_overrides", "id": agent["id"], "system": None, "tools": [], "model": "other"}
    session = caller.session({"id": over})
    assert (session["agent"]["system"], session["agent"]["tools"], session["agent"]["model"]) == (None, [], {"id": "other"})
    assert good(caller.get(f"/v1/agents/{agent['id']}"))["system"] == "Be kind."


@pytest.mark.parametrize(
    "named", [{}, {"environment_id": None}, {"environment_id": "default"}], ids=["left out", "null", "by name"]
)
def test_in_the_environment_default_assent_s_own_workers_run_the_tools(caller: Caller, named: dict[str, Any]) -> None:
    good(caller.post("/v1/environments", json={"name": "default", "config": {"type": "self_hosted"}}))
    session = good(caller.post("/v1/sessions", json={"agent": caller.agent()["id"], **named}))
    assert session["environment_id"] == caller.environment_id()


def test_initial_events_start_the_session(caller: Caller) -> None:
    session = caller.session(initial_events=[message("One."), message("Two.")], max_turns=3)
    assert (session["status"], session["max_turns"]) == ("running", 3)
    assert [e["type"] for e in caller.events(session["id"])] == ["user.message", "session.status_running", "user.message"]


def test_unsupported_fields_are_accepted_if_they_are_empty(caller: Caller) -> None:
    agent = caller.agent(skills=[], mcp_servers=[], multiagent=None, execution_identity={"type": "service_account"})
    session = caller.session(agent, resources=[], vault_ids=[], metadata={})
    assert good(caller.get(f"/v1/sessions/{session['id']}/resources")) == {"data": [], "next_page": None}


def test_a_session_names_the_approval_that_it_waits_for_and_its_times(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"])
    [tool_call] = stage.reply(session["id"], call())
    found = good(caller.get(f"/v1/sessions/{session['id']}"))
    [waiting] = found["waiting_on"]
    [approval] = stage.approvals(session["id"])
    assert (waiting["approval_id"], waiting["tool_use_id"], waiting["tool"]) == (approval.id, tool_call.id, "bash")
    assert waiting["since"] < waiting["expires_at"]
    assert (found["status"], found["stop_reason"]) == ("idle", {"type": "requires_action", "event_ids": [tool_call.id]})
    [listed] = good(caller.get("/v1/sessions"))["data"]
    assert listed | {"stats": found["stats"]} == found, "the statistics alone, which have ages, may differ"


def test_sessions_are_filtered_and_paged_both_ways(caller: Caller) -> None:
    agents = [caller.agent(), caller.agent()]
    created = [caller.session(agents[n % 2])["id"] for n in range(4)]
    caller.say(created[0])

    def ids(**query: Any) -> list[str]:
        return [s["id"] for s in good(caller.get("/v1/sessions", params=query))["data"]]

    assert ids() == created[::-1]
    assert ids(order="asc") == created
    assert ids(agent_id=agents[1]["id"]) == [created[3], created[1]]
    assert ids(agent_id=agents[1]["id"], agent_version=2) == []
    assert ids(**{"statuses[]": "running"}) == [created[0]]
    assert ids(**{"statuses[]": ["running", "idle"], "order": "asc"}) == created
    third = good(caller.get(f"/v1/sessions/{created[2]}"))["created_at"]
    assert ids(**{"created_at[gte]": third}) == [created[3], created[2]]
    assert ids(**{"created_at[lt]": third}) == [created[1], created[0]]
    page = good(caller.get("/v1/sessions", params={"order": "asc", "limit": 3}))
    assert ids(order="asc", page=page["next_page"]) == created[3:]


def test_title_metadata_and_tools_can_change(caller: Caller) -> None:
    session = caller.session(title="Old", metadata={"a": "1", "b": "2"})
    path = f"/v1/sessions/{session['id']}"
    new = good(caller.post(path, json={"title": "New", "metadata": {"a": None, "c": "3"}, "agent": {"tools": []}}))
    assert (new["title"], new["metadata"], new["agent"]["tools"]) == ("New", {"b": "2", "c": "3"}, [])
    good(caller.post(path, json={}))
    [event] = caller.events(session["id"])
    assert (event["type"], event["title"], event["metadata"]) == ("session.updated", "New", {"b": "2", "c": "3"})
    assert event["agent"] == new["agent"]
    bad(caller.post(path, json={"metadata": {str(n): "" for n in range(17)}}), 400, "metadata")


def test_tools_do_not_change_while_it_runs(caller: Caller) -> None:
    session = caller.session()
    caller.say(session["id"])
    path = f"/v1/sessions/{session['id']}"
    bad(caller.post(path, json={"agent": {"tools": []}}), 409, "running")
    assert good(caller.post(path, json={"title": "T"}))["title"] == "T"


def test_an_archived_session_keeps_its_history_and_takes_nothing_more(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"])
    path = f"/v1/sessions/{session['id']}"
    bad(caller.post(f"{path}/archive"), 409, "running")
    stage.reply(session["id"], say("Done."))
    archived = good(caller.post(f"{path}/archive"))
    assert archived["status"] == "terminated"
    assert archived["archived_at"]
    assert good(caller.post(f"{path}/archive")) == archived
    bad(caller.tell(session["id"], message()), 409, "archived")
    bad(caller.post(path, json={"title": "T"}), 409, "archived")
    assert caller.events(session["id"])[-1]["type"] == "session.status_terminated"
    assert good(caller.get("/v1/sessions"))["data"] == []
    assert len(good(caller.get("/v1/sessions", params={"include_archived": "true"}))["data"]) == 1


def test_a_deleted_session_is_gone_with_its_events(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"])
    path = f"/v1/sessions/{session['id']}"
    bad(caller.delete(path), 409, "running")
    stage.reply(session["id"], say("Done."))
    assert good(caller.delete(path)) == {"id": session["id"], "type": "session_deleted"}
    for gone in (path, f"{path}/events", f"{path}/events/stream", f"{path}/resources"):
        bad(caller.get(gone), 404)


def test_a_session_that_waits_can_be_deleted(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"])
    stage.reply(session["id"], call())
    good(caller.delete(f"/v1/sessions/{session['id']}"))
    assert good(caller.get("/v1/approvals"))["data"] == []


def test_an_environment_is_created_changed_archived_and_deleted(caller: Caller) -> None:
    [built_in] = good(caller.get("/v1/environments"))["data"]
    assert (built_in["name"], built_in["built_in"], built_in["config"]["type"]) == ("default", True, "cloud")
    created = good(caller.post("/v1/environments", json={"name": "E", "config": built_in["config"], "metadata": {"a": "1"}}))
    path = f"/v1/environments/{created['id']}"
    new = good(caller.post(path, json={"name": "F", "description": "d", "metadata": {"a": "", "b": "2"}}))
    assert (new["name"], new["description"], new["metadata"]) == ("F", "d", {"b": "2"})
    assert good(caller.post(path, json={"description": None}))["description"] is None
    session = caller.session(environment_id=created["id"])
    bad(caller.delete(path), 409, "Sessions")
    assert good(caller.post(f"{path}/archive"))["archived_at"]
    bad(caller.post(path, json={"name": "G"}), 409, "archived")
    body = {"agent": session["agent"]["id"], "environment_id": created["id"]}
    bad(caller.post("/v1/sessions", json=body), 400, "environment_id", "archived")
    good(caller.delete(f"/v1/sessions/{session['id']}"))
    assert good(caller.delete(path)) == {"id": created["id"], "type": "environment_deleted"}
    bad(caller.get(path), 404)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_the_built_in_environment_stays(caller: Caller, method: str) -> None:
    path = f"/v1/environments/{caller.environment_id()}" + ("/archive" if method == "POST" else "")
    bad(caller.request(method, path), 409, "built-in")


def test_agents_with_a_model_object_and_a_name_of_any_language(caller: Caller) -> None:
    agent = caller.agent(name="客服 🤖 \u202e", model={"id": MODEL, "speed": "standard"})
    assert good(caller.get(f"/v1/agents/{agent['id']}"))["name"] == "客服 🤖 \u202e"
