"""A session says what waits, for whom, and with what input, from stored rows alone."""

from typing import Any

from doors.served import Caller, bad, good
from doors.waiting import asked, decide, secretive
from people import member
from rows.stage import Stage, call, say
from rows.threads import Child

from models.pure.json.canonical import digest

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
    assert waiting["options"] == ["once", "session", "always", "edit", "answer", "deny"]
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


def test_each_call_is_listed_with_its_thread_also_while_another_one_runs(caller: Caller, stage: Stage) -> None:
    session_id = caller.session(caller.agent(tools=[{"type": "agent_toolset_20260401"}, LOOK_UP]))["id"]
    stage.message(session_id)
    child = Child(stage, session_id)
    asked, theirs = child.reply(call(), call("look_up", n=1))
    session = good(caller.get(f"/v1/sessions/{session_id}"))
    assert session["status"] == "running"
    waiting = {one["tool_use_id"]: one["session_thread_id"] for one in session["waiting_on"]}
    assert waiting == {asked.id: child.id, theirs.id: child.id}


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


def test_sessions_are_found_by_what_they_wait_for(caller: Caller, stage: Stage) -> None:
    tools = [{"type": "agent_toolset_20260401"}, LOOK_UP]
    theirs, ours = call("look_up", n=1), call(command="ls")
    agent = caller.agent(tools=tools)
    person, client, both = (asked(caller, stage, *blocks, agent=agent)[0] for blocks in ([ours], [theirs], [ours, theirs]))
    none = caller.session(agent)["id"]

    def ids(**query: Any) -> list[str]:
        return [session["id"] for session in good(caller.get("/v1/sessions", params=query))["data"]]

    assert ids(waiting="approval") == [both.session_id, person.session_id]
    assert ids(waiting="client") == [both.session_id, client.session_id]
    assert ids(waiting="any", order="asc") == [person.session_id, client.session_id, both.session_id]
    assert ids(waiting="none") == [none]
    first = good(caller.get("/v1/sessions", params={"waiting": "any", "limit": 2}))
    assert ids(waiting="any", page=first["next_page"]) == [person.session_id]
    decide(caller, person, result="deny")
    assert ids(waiting="approval") == [both.session_id]
    bad(caller.get("/v1/sessions", params={"waiting": "person"}), 400, "waiting", "'approval', 'client', 'any' or 'none'")


def test_a_session_has_one_word_for_its_state(caller: Caller, stage: Stage) -> None:
    agent = caller.agent(tools=[{"type": "agent_toolset_20260401"}, LOOK_UP])
    session_id = caller.session(agent)["id"]

    def state() -> str:
        word: str = good(caller.get(f"/v1/sessions/{session_id}"))["state"]
        return word

    assert state() == "active"
    caller.say(session_id)
    assert state() == "active"
    [tool_call] = stage.reply(session_id, call())
    assert state() == "waiting_approval"
    decide(caller, tool_call, result="deny")
    [tool_call] = stage.reply(session_id, call("look_up", n=1))
    assert state() == "active"
    result = {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "content": [{"type": "text", "text": "1"}]}
    good(caller.tell(session_id, result))
    stage.reply(session_id, say("Done."))
    assert state() == "completed"
    caller.say(session_id)
    stage.fail(stage.begin(session_id), retryable=False)
    assert state() == "error"
    good(caller.post(f"/v1/sessions/{session_id}/archive"))
    assert state() == "error"


def test_an_allowed_call_of_a_client_waits_for_its_client_next(caller: Caller, stage: Stage) -> None:
    tool_call = secretive(caller, stage)
    decide(caller, tool_call, result="allow", updated_input={"amount": 6, "pin": "4711"})
    [waiting] = waiting_on(caller, tool_call.session_id)
    assert (waiting["waits_for"], waiting["input"]) == ("client", {"amount": 6, "pin": "«masked»"})
    assert (waiting["input_sha256"], waiting["input_is_whole"]) == (digest({"amount": 6, "pin": "4711"}), False)
