"""The client runs custom tools, and posts their results."""

from typing import Any

import pytest
from rows.stage import Stage, call, say

from models.errors import Invalid
from models.session.tool_call.row import ToolCall
from workers.sweeps import deadlines


def _result(tool_call: ToolCall, text: str = "42", **more: object) -> dict[str, object]:
    return {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "content": [say(text)], **more}


def test_a_call_without_a_policy_waits_for_the_client(stage: Stage) -> None:
    session = stage.session(custom=("lookup",))
    tool_call = stage.propose(session, call("lookup", n=1))
    assert tool_call.status == "with_client"
    assert stage.events(session)[-1].body["stop_reason"] == {"type": "requires_action", "event_ids": [tool_call.id]}
    stage.send(session, _result(tool_call))
    assert stage.history(session)[-1]["content"][0]["content"] == [say("42")]
    stage.reply(session, say("It is 42."))
    stage.check(session)


def test_the_same_result_again_is_a_no_op_and_another_is_refused(stage: Stage) -> None:
    """With 400, because runners retry a 409 for minutes."""
    session = stage.session(custom=("lookup",))
    tool_call = stage.propose(session, call("lookup", n=1))
    [first] = stage.send(session, _result(tool_call))
    [again] = stage.send(session, _result(tool_call))
    assert again.id == first.id
    with pytest.raises(Invalid, match=r"events.0.custom_tool_use_id"):
        stage.send(session, _result(tool_call, "43"))


def test_the_event_of_a_call_that_asks_is_withheld_until_it_is_allowed(stage: Stage) -> None:
    """So that no runner runs the call before."""
    session = stage.session(custom=("pay?",))
    tool_call = stage.propose(session, call("pay", n=1))
    assert tool_call.status == "asked"
    assert not stage.events(session, "agent.custom_tool_use")
    assert stage.events(session)[-1].body["stop_reason"]["event_ids"] == [tool_call.id]
    with pytest.raises(Invalid, match="awaits approval"):
        stage.send(session, _result(tool_call))
    stage.confirm(session, tool_call.id)
    [event] = stage.events(session, "agent.custom_tool_use")
    assert event.id == tool_call.id
    assert "evaluated_permission" not in event.body
    stage.send(session, _result(tool_call))
    stage.reply(session, say("Paid."))
    stage.check(session)


def test_the_event_of_a_denied_call_says_deny_and_has_a_result(stage: Stage) -> None:
    """So that runners skip the call."""
    session = stage.session(custom=("pay?",))
    tool_call = stage.propose(session, call("pay", n=1))
    stage.confirm(session, tool_call.id, "deny")
    assert stage.events(session, "agent.custom_tool_use")[0].body["evaluated_permission"] == "deny"
    assert stage.events(session, "user.custom_tool_result")[0].body["is_error"]


def test_an_empty_error_gets_a_text(stage: Stage) -> None:
    """The model's API refuses an empty error."""
    session = stage.session(custom=("lookup",))
    tool_call = stage.propose(session, call("lookup", n=1))
    stage.send(session, {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "is_error": True})
    assert stage.history(session)[-1]["content"][0]["content"][0]["text"]


def test_a_result_for_a_call_that_the_server_runs_is_refused(stage: Stage) -> None:
    session = stage.session(bash="always_ask")
    tool_call = stage.propose(session)
    with pytest.raises(Invalid, match="server runs"):
        stage.send(session, _result(tool_call))


def test_a_bad_input_never_reaches_the_client(stage: Stage) -> None:
    session = stage.session(custom=("lookup",))
    tool_call = stage.propose(session, call("lookup", n="one"))
    assert tool_call.status == "refused"
    assert stage.events(session, "agent.custom_tool_use")[0].body["evaluated_permission"] == "deny"


def test_many_calls_are_answered_in_any_order(stage: Stage) -> None:
    """In one request or in several. The model gets the results in the order of its calls."""
    session = stage.session(custom=("lookup",))
    stage.message(session)
    calls = stage.reply(session, *(call("lookup", n=n) for n in range(20)))
    stage.send(session, *(_result(each, each.id) for each in calls[10:]))
    for each in reversed(calls[:10]):
        assert stage.read(session).status == "waiting"
        stage.send(session, _result(each, each.id))
    results = stage.history(session)[-1]["content"]
    assert [block["content"][0]["text"] for block in results] == [each.id for each in calls]
    stage.reply(session, say("All of them."))
    stage.check(session)


def test_a_result_for_another_session_s_call_is_refused(stage: Stage) -> None:
    """With all other events of the request."""
    mine, theirs = stage.session(custom=("lookup",)), stage.session(custom=("lookup",))
    for session in (mine, theirs):
        stage.message(session)
    [own], [other] = (stage.reply(session, call("lookup", n=1)) for session in (mine, theirs))
    with pytest.raises(Invalid, match=r"events.1.custom_tool_use_id"):
        stage.send(mine, _result(own), _result(other))
    assert [stage.get(ToolCall, each.id).status for each in (own, other)] == ["with_client", "with_client"]


def test_a_client_s_error_reaches_the_model_as_an_error(stage: Stage) -> None:
    session = stage.session(custom=("lookup",))
    tool_call = stage.propose(session, call("lookup", n=1))
    stage.send(session, _result(tool_call, "This client has no tool lookup.", is_error=True))
    [block] = stage.history(session)[-1]["content"]
    assert (block["is_error"], block["content"]) == (True, [say("This client has no tool lookup.")])


def test_a_call_without_a_result_in_time_expires(stage: Stage, clock: Any) -> None:
    """The model is told that the call may have taken effect, and a late result is refused."""
    session = stage.session(custom=("lookup", "slow"))
    stage.change_agent(session, lambda agent: agent["tools"][-2].update(result_timeout_seconds=60))
    stage.message(session)
    tool_call, slow = stage.reply(session, call("lookup", n=1), call("slow", n=1))
    clock.advance(59)
    deadlines.expire_calls()
    assert stage.get(ToolCall, tool_call.id).status == "with_client"
    clock.advance(2)
    deadlines.expire_calls()
    assert stage.get(ToolCall, tool_call.id).status == "expired"
    assert "within 1 minute: it may or may not have" in stage.result(tool_call)
    with pytest.raises(Invalid, match="it is expired already"):
        stage.send(session, _result(tool_call))
    assert stage.read(session).stop_reason == {"type": "requires_action", "event_ids": [slow.id]}
    clock.advance(86_400)
    deadlines.expire_calls()
    stage.reply(session, say("Without them."))
    stage.check(session)


def test_the_client_s_time_starts_when_it_gets_the_call(stage: Stage, clock: Any) -> None:
    """Not when a person was asked."""
    session = stage.session(custom=("pay?",))
    stage.change_agent(session, lambda agent: agent["tools"][-1].update(result_timeout_seconds=60))
    tool_call = stage.propose(session, call("pay", n=1))
    clock.advance(600)
    stage.confirm(session, tool_call.id)
    clock.advance(50)
    deadlines.expire_calls()
    assert stage.get(ToolCall, tool_call.id).status == "with_client"
    clock.advance(11)
    deadlines.expire_calls()
    assert stage.get(ToolCall, tool_call.id).status == "expired"


def test_the_client_has_as_much_time_for_an_edited_call(stage: Stage, clock: Any) -> None:
    session = stage.session(self_hosted=True)
    tool_call = stage.propose(session, call(command="rm x"))
    stage.confirm(session, tool_call.id, updated_input={"command": "ls"})
    twin = stage.events(session, "agent.tool_use")[-1]
    clock.advance(86_399)
    deadlines.expire_calls()
    assert stage.get(ToolCall, twin.id).status == "with_client"
    clock.advance(2)
    deadlines.expire_calls()
    assert stage.get(ToolCall, twin.id).status == "expired"
