"""An approval names the thread and the agent that ask, the path to it, and whose calls a grant would cover."""

from typing import Any

import pytest
from doors.served import Caller, bad, good
from rows.crew import Crew, send
from rows.stage import Stage, call

from models.pure.policy import Effect

SCOUT = {"name": "Scout", "description": "Looks ahead.", "system": "Look ahead."}


@pytest.fixture
def crew(stage: Stage) -> Crew:
    """A coordinator that asks, as does each of its sub-agents Reader and Scout."""
    crew = Crew.begin(stage, inline=True)
    crew.lead_replies(send("Reader"), send(SCOUT))
    crew.lead_replies(call(command="ls"))
    for number in (0, 1):
        crew.replies(call(command="ls"), number=number)
    return crew


def approvals(caller: Caller) -> list[dict[str, Any]]:
    """The approvals of the coordinator, of Reader, and of Scout."""
    listed: list[dict[str, Any]] = good(caller.get("/v1/approvals"))["data"]
    return sorted(listed, key=lambda approval: ["Lead", "Reader", "Scout"].index(approval["agent_name"]))


def test_each_approval_has_the_path_from_the_session_s_own_thread(caller: Caller, crew: Crew) -> None:
    lead, reader, scout = approvals(caller)
    own = {"session_thread_id": crew.lead.id, "agent_name": "Lead"}
    assert (lead["session_thread_id"], lead["path"]) == (crew.lead.id, [own])
    for approval, thread in ((reader, crew.thread(0)), (scout, crew.thread(1))):
        assert approval["session_thread_id"] == thread.id
        assert approval["path"] == [own, {"session_thread_id": thread.id, "agent_name": thread.name}]
    assert good(caller.get(f"/v1/approvals/{scout['id']}")) == scout


def test_the_events_of_an_approval_have_the_path(stage: Stage, caller: Caller, crew: Crew) -> None:
    _, reader, _ = approvals(caller)
    path = f"/v1/sessions/{crew.session_id}/events"
    events = good(caller.get(path, params={"include": "approvals", "limit": 100}))["data"]
    [requested] = [event for event in events if event.get("approval_id") == reader["id"]]
    [use] = [event for event in events if event["id"] == reader["tool_use_id"]]
    assert requested["path"] == use["approval"]["path"] == reader["path"]
    assert requested["agent_name"] == use["approval"]["agent_name"] == "Reader"
    assert requested["session_thread_id"] == use["session_thread_id"] == crew.thread().id


def test_an_approval_says_whose_calls_each_grant_would_cover(caller: Caller, crew: Crew) -> None:
    lead, reader, scout = (approval["reach"] for approval in approvals(caller))
    every = "calls of every agent in this session, with all sub-agents"
    assert lead["session"] == "calls of the agent Lead, version 1, in this session"
    assert reader == {
        "session": "calls of the agent Reader, version 1, in this session",
        "include_sub_agents": every,
        "always": "calls of the agent Reader in every session",
    }
    assert scout == {
        "session": "calls of the sub-agent Scout in this thread alone",
        "include_sub_agents": every,
        "always": None,
    }


@pytest.mark.parametrize(("agent", "more", "waiting"), [(0, {}, 0), (1, {}, 0), (1, {"include_sub_agents": True}, 2)])
def test_a_preview_says_whose_calls_it_releases_before_the_grant_does(
    caller: Caller, crew: Crew, agent: int, more: dict[str, Any], waiting: int
) -> None:
    approval = approvals(caller)[agent]
    preview = good(caller.post(f"/v1/approvals/{approval['id']}/preview", json={"scope": "session"} | more))
    assert preview["waiting"] == waiting
    assert preview["reach"] == approval["reach"]["include_sub_agents" if more else "session"]
    decision = {"result": "allow", "scope": "session"} | more
    grant = good(caller.post(f"/v1/approvals/{approval['id']}/decision", json=decision))["grant"]
    assert (grant["reach"], grant["include_sub_agents"]) == (preview["reach"], bool(more))
    assert (grant["session_thread_id"], grant["agent_version"]) == (approval["session_thread_id"], 1)


def test_sub_agents_go_with_one_session(caller: Caller, crew: Crew) -> None:
    path = f"/v1/approvals/{approvals(caller)[1]['id']}"
    always = {"scope": "always", "include_sub_agents": True}
    for url, body in ((f"{path}/preview", always), (f"{path}/decision", {"result": "allow"} | always)):
        bad(caller.post(url, json=body), 400, "include_sub_agents: is for one session")


def test_a_thread_s_verdict_is_explained(caller: Caller, crew: Crew) -> None:
    def effect(**where: Any) -> Effect:
        body = {"session_id": crew.session_id, "tool": "bash", "input": {"command": "ls"}} | where
        explanation = good(caller.post("/v1/policy/explain", json=body))
        result: Effect = explanation["effect"]
        return result

    reader = approvals(caller)[1]
    caller.post(f"/v1/approvals/{reader['id']}/decision", json={"result": "allow", "scope": "session"})
    assert effect(session_thread_id=reader["session_thread_id"]) == "allow", "its grant counts"
    assert effect() == effect(session_thread_id=crew.thread(1).id) == "ask"
    for where in (
        {"session_thread_id": "sthr_none"},
        {"session_id": None, "agent": crew.lead.agent_id, "session_thread_id": "sthr_1"},
    ):
        body = {"session_id": crew.session_id, "tool": "bash", "input": {}} | where
        bad(caller.post("/v1/policy/explain", json=body), 400, "session_thread_id: ")
