"""A session says what waits, for whom, and with what input, from stored rows alone."""

from typing import Any

from doors.served import Caller, good
from doors.waiting import asked, decide, secretive
from people import member
from rows.stage import Stage, call

from models.pure.canonical import digest

LOOK_UP: dict[str, Any] = {
    "type": "custom",
    "name": "look_up",
    "description": "Look something up.",
    "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
}


def waiting_on(caller: Caller, session_id: str) -> list[dict[str, Any]]:
    """Return what the session waits for."""
    waiting: list[dict[str, Any]] = good(caller.get(f"/v1/sessions/{session_id}"))["waiting_on"]
    return waiting


def test_it_shows_people_the_call_that_would_run(caller: Caller, stage: Stage) -> None:
    [tool_call] = asked(caller, stage, call(command="ls -l"))
    [waiting] = waiting_on(caller, tool_call.session_id)
    assert (waiting["waits_for"], waiting["kind"], waiting["tool"]) == ("person", "tool_call", "bash")
    assert (waiting["prompt"], waiting["input"]) == ("Run shell command: ls -l", {"command": "ls -l"})
    assert (waiting["input_sha256"], waiting["input_is_whole"]) == (digest({"command": "ls -l"}), True)
    assert waiting["since"] < waiting["expires_at"]
    [listed] = good(caller.get("/v1/sessions"))["data"]
    assert listed["waiting_on"] == [waiting]


def test_it_masks_secrets_and_says_so(caller: Caller, stage: Stage) -> None:
    tool_call = secretive(caller, stage)
    [waiting] = waiting_on(caller, tool_call.session_id)
    assert (waiting["input"], waiting["input_is_whole"]) == ({"amount": 5, "pin": "«masked»"}, False)
    assert waiting["input_sha256"] == digest({"amount": 5, "pin": "4711"})


def test_a_long_input_is_shortened_and_says_so(caller: Caller, stage: Stage) -> None:
    block = call("write", file_path="a.txt", content="x" * 100_000)
    [tool_call] = asked(caller, stage, block)
    [waiting] = waiting_on(caller, tool_call.session_id)
    assert waiting["input"] == {"file_path": "a.txt", "content": "x" * 1000 + "… (99000 more characters)"}
    assert (waiting["input_is_whole"], waiting["input_sha256"]) == (False, digest(block["input"]))


def test_it_shows_the_input_that_a_voter_edited(caller: Caller, stage: Stage) -> None:
    """With four eyes an edit waits for another voter, who would decide about the new input."""
    approver, _ = member(stage, "admin"), member(stage, "admin")
    agent = caller.agent(tools=[{"type": "agent_toolset_20260401", "default_config": {"approval": {"four_eyes": True}}}])
    started = f"user:{member(stage, 'admin').person_id}"
    [tool_call] = asked(caller, stage, call(command="ls"), agent=agent, on_behalf_of=started)
    [waiting] = waiting_on(caller, tool_call.session_id)
    edit = {"result": "allow", "updated_input": {"command": "ls -l"}}
    with approver.client(str(caller.base_url)) as browser:
        good(browser.post(f"/v1/approvals/{waiting['approval_id']}/decision", json=edit))
    [waiting] = waiting_on(caller, tool_call.session_id)
    assert (waiting["input"], waiting["input_sha256"]) == ({"command": "ls -l"}, digest({"command": "ls -l"}))
    assert [vote["result"] for vote in waiting["votes"]] == ["edit"]


def test_a_call_waits_for_its_client(caller: Caller, stage: Stage) -> None:
    agent = caller.agent(tools=[{**LOOK_UP, "result_timeout_seconds": 60}])
    [tool_call] = asked(caller, stage, call("look_up", n=1), agent=agent)
    [waiting] = waiting_on(caller, tool_call.session_id)
    assert (waiting["waits_for"], waiting["tool_use_id"], waiting["tool"]) == ("client", tool_call.id, "look_up")
    assert (waiting["input"], waiting["input_sha256"]) == ({"n": 1}, digest({"n": 1}))
    assert waiting["since"] < waiting["expires_at"]


def test_a_call_waits_for_a_worker_of_its_self_hosted_environment(caller: Caller, stage: Stage) -> None:
    environment = good(caller.post("/v1/environments", json={"name": "E", "config": {"type": "self_hosted"}}))
    tools = [{"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_allow"}}}, LOOK_UP]
    blocks = [call("look_up", n=1), call(command="ls")]
    calls = asked(caller, stage, *blocks, agent=caller.agent(tools=tools), environment_id=environment["id"])
    waiting = waiting_on(caller, calls[0].session_id)
    assert [(one["waits_for"], one["tool_use_id"]) for one in waiting] == [("client", calls[0].id), ("worker", calls[1].id)]


def test_an_allowed_call_of_a_client_waits_for_its_client_next(caller: Caller, stage: Stage) -> None:
    tool_call = secretive(caller, stage)
    decide(caller, tool_call, result="allow", updated_input={"amount": 6, "pin": "4711"})
    [waiting] = waiting_on(caller, tool_call.session_id)
    assert (waiting["waits_for"], waiting["input"]) == ("client", {"amount": 6, "pin": "«masked»"})
    assert (waiting["input_sha256"], waiting["input_is_whole"]) == (digest({"amount": 6, "pin": "4711"}), False)
