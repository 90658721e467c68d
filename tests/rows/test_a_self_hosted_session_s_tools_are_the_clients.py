"""In a self-hosted session the client runs the built-in tools. Its result settles an allowed call once."""

from typing import Any

import pytest
from rows.stage import Stage, call, entry, say

from models.database.transactions import transaction
from models.errors import Invalid
from models.flow.carry_on.hosted_work import offer_work
from models.session.tool_call.row import ToolCall
from models.session.work import Work
from models.workspace import toolset


def result(tool_call: ToolCall, text: str = "42", **more: Any) -> dict[str, Any]:
    """The runner's result."""
    return {"type": "user.tool_result", "tool_use_id": tool_call.id, "content": [say(text)], **more}


def work(stage: Stage, session_id: str) -> list[Work]:
    """The session's work, the oldest first."""
    with transaction(stage.workspace_id) as db:
        return db.find(Work, "WHERE session_id = %(session_id)s ORDER BY created_at, id", session_id=session_id)


def test_an_allowed_call_waits_for_the_client_and_is_never_queued(stage: Stage) -> None:
    session_id = stage.session(self_hosted=True, bash="always_allow")
    theirs = stage.propose(session_id)
    assert (theirs.status, theirs.kind) == ("with_client", "self_hosted")
    assert stage.claim_call(theirs) is None
    [event] = stage.events(session_id, "agent.tool_use")
    assert (event.id, event.body["evaluated_permission"]) == (theirs.id, "allow")
    idle = stage.events(session_id)[-1]
    assert idle.body["stop_reason"] == {"type": "requires_action", "event_ids": [theirs.id]}
    stage.send(session_id, result(theirs))
    assert stage.result(theirs) == "42"
    assert not stage.events(session_id, "agent.tool_result")
    stage.reply(session_id, say("Done."))
    stage.check(session_id)


def test_the_client_s_worker_gets_no_directory_of_a_command(stage: Stage) -> None:
    """It would ignore the field, and run the command elsewhere than people were shown."""
    session_id = stage.session(self_hosted=True)
    [bash] = [tool for tool in stage.locked(session_id, stage.tools).for_model() if tool["name"] == "bash"]
    assert "working_directory" not in bash["input_schema"]["properties"]
    elsewhere = stage.propose(session_id, call(command="ls", working_directory="src"))
    assert elsewhere.status == "refused"
    assert "working_directory" in stage.result(elsewhere)
    asked = stage.reply(session_id, call(command="ls"))[0]
    with pytest.raises(Invalid, match="working_directory"):
        stage.decide(stage.approvals(session_id)[-1], result="allow", updated_input={"command": "ls", "working_directory": "src"})
    assert stage.get(ToolCall, asked.id).status == "asked"


def test_our_workers_still_run_the_calls_of_toolsets(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session_id = stage.session(self_hosted=True, servers={"shop": "assent:orders"}, shop="always_allow")
    ours = stage.propose(session_id, call("mcp__shop__refund", n=1))
    assert ours.status == "queued"
    stage.run_call(ours)
    assert stage.result(ours) == "ok"


def test_a_call_that_asks_takes_no_result_before_it_is_allowed(stage: Stage) -> None:
    session_id = stage.session(self_hosted=True)
    asked = stage.propose(session_id)
    [event] = stage.events(session_id, "agent.tool_use")
    assert event.body["evaluated_permission"] == "ask"
    with pytest.raises(Invalid, match="awaits approval"):
        stage.send(session_id, result(asked))
    stage.confirm(session_id, asked.id)
    assert stage.get(ToolCall, asked.id).status == "with_client"
    stage.send(session_id, result(asked))
    assert stage.read(session_id).status == "running"


def test_the_first_result_wins_and_the_same_again_is_a_no_op(stage: Stage) -> None:
    session_id = stage.session(self_hosted=True, bash="always_allow")
    theirs = stage.propose(session_id)
    [first] = stage.send(session_id, result(theirs))
    [again] = stage.send(session_id, result(theirs))
    assert again.id == first.id
    with pytest.raises(Invalid, match="done already"):
        stage.send(session_id, result(theirs, "43"))
    with pytest.raises(Invalid, match="done already"):
        stage.send(session_id, result(theirs, is_error=True))
    assert stage.result(theirs) == "42"


def test_a_call_that_our_workers_run_takes_no_result(stage: Stage) -> None:
    session_id = stage.session(custom=("look_up",), bash="always_allow")
    stage.message(session_id)
    [ours, custom] = stage.reply(session_id, call(), call("look_up", n=1))
    with pytest.raises(Invalid, match="which the server runs"):
        stage.send(session_id, result(ours))
    with pytest.raises(Invalid, match=r"takes a user\.custom_tool_result"):
        stage.send(session_id, result(custom))


@pytest.mark.parametrize("policy", ["always_allow", "always_ask"])
def test_an_interrupted_call_has_a_result_so_that_no_runner_runs_it(stage: Stage, policy: str) -> None:
    session_id = stage.session(self_hosted=True, bash=policy)
    theirs = stage.propose(session_id)
    stage.send(session_id, {"type": "user.interrupt"})
    [event] = stage.events(session_id, "user.tool_result")
    assert event.body["tool_use_id"] == theirs.id
    with pytest.raises(Invalid, match="cancelled already"):
        stage.send(session_id, result(theirs))
    stage.check(session_id)


def test_a_denied_call_takes_no_result(stage: Stage) -> None:
    session_id = stage.session(self_hosted=True)
    asked = stage.propose(session_id)
    stage.confirm(session_id, asked.id, "deny")
    with pytest.raises(Invalid, match="denied already"):
        stage.send(session_id, result(asked))
    stage.reply(session_id, say("Done."))
    stage.check(session_id)


def test_a_run_queues_work_for_the_environment_s_worker_once(stage: Stage) -> None:
    session_id = stage.session(self_hosted=True, bash="always_allow")
    assert work(stage, session_id) == []
    stage.message(session_id)
    stage.message(session_id, "And this.")
    assert [w.status for w in work(stage, session_id)] == ["queued"]
    ours = stage.session(bash="always_allow")
    stage.message(ours)
    assert work(stage, ours) == []


def test_work_that_nobody_took_stops_with_the_run(stage: Stage) -> None:
    session_id = stage.session(self_hosted=True, bash="always_allow")
    stage.message(session_id)
    stage.reply(session_id, say("Done."))
    assert [w.status for w in work(stage, session_id)] == ["stopped"]
    stage.message(session_id)
    assert [w.status for w in work(stage, session_id)] == ["stopped", "queued"]


def test_work_whose_workers_died_hides_no_work_behind_it(stage: Stage, clock: Any) -> None:
    def offered() -> str | None:
        with transaction(stage.workspace_id) as db:
            work = offer_work(db, stage.principal, environment_id, "worker", 600)
            return work.session_id if work else None

    first = stage.session(self_hosted=True)
    environment_id = stage.read(first).environment_id
    others = [stage.session(self_hosted=True) for _ in range(10)]
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET environment_id = %(id)s", id=environment_id)
    for session in (first, *others[:9]):
        stage.message(session)
        assert offered() == session
    clock.advance(61)  # none of the workers has acknowledged its work: each lease has lapsed
    stage.message(others[9])
    clock.advance(1)
    assert {offered() for _ in range(11)} == {first, *others}
