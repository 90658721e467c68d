"""R24: custom tools run on the client, which posts the result."""

from typing import Any

import pytest
from rows.stage import Stage, call, say

from models.errors import Invalid
from models.session.tool_call import ToolCall
from workers import sweeps


def _result(found: ToolCall, text: str = "42", **more: object) -> dict[str, object]:
    return {"type": "user.custom_tool_result", "custom_tool_use_id": found.id, "content": [say(text)], **more}


def test_without_a_policy_it_is_allowed_and_waits_for_the_client(stage: Stage) -> None:
    """Posting the result is the client's act; the session requires action until then."""
    session = stage.session(custom=("lookup",))
    stage.message(session)
    [found] = stage.reply(session, call("lookup", n=1))
    assert found.status == "with_client"
    assert stage.events(session)[-1].body["stop_reason"] == {"type": "requires_action", "event_ids": [found.id]}
    stage.send(session, _result(found))
    assert stage.history(session)[-1]["content"][0]["content"] == [say("42")]
    stage.reply(session, say("It is 42."))
    stage.check(session)


def test_the_same_result_again_is_nothing_and_another_is_refused(stage: Stage) -> None:
    """400, not 409: runners retry a conflict for minutes."""
    session = stage.session(custom=("lookup",))
    stage.message(session)
    [found] = stage.reply(session, call("lookup", n=1))
    [first] = stage.send(session, _result(found))
    [again] = stage.send(session, _result(found))
    assert again.id == first.id
    with pytest.raises(Invalid, match=r"events.0.custom_tool_use_id"):
        stage.send(session, _result(found, "43"))


def test_under_ask_the_event_is_withheld_until_it_is_allowed(stage: Stage) -> None:
    """So that no runner runs it before a person said yes."""
    session = stage.session(custom=("pay?",))
    stage.message(session)
    [found] = stage.reply(session, call("pay", n=1))
    assert found.status == "asked"
    assert not stage.events(session, "agent.custom_tool_use")
    assert stage.events(session)[-1].body["stop_reason"]["event_ids"] == [found.id]
    with pytest.raises(Invalid, match="awaits approval"):
        stage.send(session, _result(found))
    stage.confirm(session, found.id)
    [event] = stage.events(session, "agent.custom_tool_use")
    assert event.id == found.id
    assert "evaluated_permission" not in event.body
    stage.send(session, _result(found))
    stage.reply(session, say("Paid."))
    stage.check(session)


def test_a_denied_one_is_shown_as_denied_with_its_result(stage: Stage) -> None:
    """Runners skip it."""
    session = stage.session(custom=("pay?",))
    stage.message(session)
    [found] = stage.reply(session, call("pay", n=1))
    stage.confirm(session, found.id, "deny")
    assert stage.events(session, "agent.custom_tool_use")[0].body["evaluated_permission"] == "deny"
    assert stage.events(session, "user.custom_tool_result")[0].body["is_error"]


def test_an_error_without_a_word_gets_one(stage: Stage) -> None:
    """The model's API refuses an empty error."""
    session = stage.session(custom=("lookup",))
    stage.message(session)
    [found] = stage.reply(session, call("lookup", n=1))
    stage.send(session, {"type": "user.custom_tool_result", "custom_tool_use_id": found.id, "is_error": True})
    assert stage.history(session)[-1]["content"][0]["content"][0]["text"]


def test_a_result_for_a_call_that_the_server_runs_is_refused(stage: Stage) -> None:
    """R26: a client cannot answer in place of a built-in tool."""
    session = stage.session(bash="always_ask")
    stage.message(session)
    [found] = stage.reply(session, call())
    with pytest.raises(Invalid, match="server runs"):
        stage.send(session, _result(found))


def test_a_bad_input_never_reaches_the_client(stage: Stage) -> None:
    """R25."""
    session = stage.session(custom=("lookup",))
    stage.message(session)
    [found] = stage.reply(session, call("lookup", n="one"))
    assert found.status == "refused"
    assert stage.events(session, "agent.custom_tool_use")[0].body["evaluated_permission"] == "deny"


def test_many_at_once_are_answered_in_any_order(stage: Stage) -> None:
    """In one request or in several; the model gets them in the order in which it asked."""
    session = stage.session(custom=("lookup",))
    stage.message(session)
    found = stage.reply(session, *(call("lookup", n=n) for n in range(20)))
    stage.send(session, *(_result(each, each.id) for each in found[10:]))
    for each in reversed(found[:10]):
        assert stage.read(session).status == "waiting"
        stage.send(session, _result(each, each.id))
    results = stage.history(session)[-1]["content"]
    assert [block["content"][0]["text"] for block in results] == [each.id for each in found]
    stage.reply(session, say("All of them."))
    stage.check(session)


def test_a_result_for_another_session_s_call_is_refused(stage: Stage) -> None:
    """And nothing of the request it came in is done."""
    mine, theirs = stage.session(custom=("lookup",)), stage.session(custom=("lookup",))
    for session in (mine, theirs):
        stage.message(session)
    [own], [other] = (stage.reply(session, call("lookup", n=1)) for session in (mine, theirs))
    with pytest.raises(Invalid, match=r"events.1.custom_tool_use_id"):
        stage.send(mine, _result(own), _result(other))
    assert [stage.get(ToolCall, each.id).status for each in (own, other)] == ["with_client", "with_client"]


def test_a_client_that_does_not_know_the_tool_says_so(stage: Stage) -> None:
    """As an error; the model goes on another way."""
    session = stage.session(custom=("lookup",))
    stage.message(session)
    [found] = stage.reply(session, call("lookup", n=1))
    stage.send(session, _result(found, "This client has no tool lookup.", is_error=True))
    [block] = stage.history(session)[-1]["content"]
    assert (block["is_error"], block["content"]) == (True, [say("This client has no tool lookup.")])


def test_a_client_that_gives_no_result_in_time_is_not_waited_for(stage: Stage, clock: Any) -> None:
    """The model is told that it may have happened all the same, and what comes late is refused."""
    session = stage.session(custom=("lookup", "slow"))
    stage.change_agent(session, lambda agent: agent["tools"][-2].update(result_timeout_seconds=60))
    stage.message(session)
    found, slow = stage.reply(session, call("lookup", n=1), call("slow", n=1))
    clock.advance(59)
    sweeps.expire_calls()
    assert stage.get(ToolCall, found.id).status == "with_client"
    clock.advance(2)
    sweeps.expire_calls()
    assert stage.get(ToolCall, found.id).status == "expired"
    assert "within 1 minute: it may or may not have" in stage.result(found)
    with pytest.raises(Invalid, match="it is expired already"):
        stage.send(session, _result(found))
    assert stage.read(session).stop_reason == {"type": "requires_action", "event_ids": [slow.id]}
    clock.advance(86_400)
    sweeps.expire_calls()
    stage.reply(session, say("Without them."))
    stage.check(session)


def test_the_client_s_time_runs_from_when_it_is_given_the_call(stage: Stage, clock: Any) -> None:
    """Not from when a person was asked about it."""
    session = stage.session(custom=("pay?",))
    stage.change_agent(session, lambda agent: agent["tools"][-1].update(result_timeout_seconds=60))
    stage.message(session)
    [found] = stage.reply(session, call("pay", n=1))
    clock.advance(600)
    stage.confirm(session, found.id)
    clock.advance(50)
    sweeps.expire_calls()
    assert stage.get(ToolCall, found.id).status == "with_client"
    clock.advance(11)
    sweeps.expire_calls()
    assert stage.get(ToolCall, found.id).status == "expired"


def test_the_client_s_time_for_a_call_that_a_person_changed_is_as_long(stage: Stage, clock: Any) -> None:
    session = stage.session(self_hosted=True)
    stage.message(session)
    [found] = stage.reply(session, call(command="rm x"))
    stage.confirm(session, found.id, updated_input={"command": "ls"})
    twin = stage.events(session, "agent.tool_use")[-1]
    clock.advance(86_399)
    sweeps.expire_calls()
    assert stage.get(ToolCall, twin.id).status == "with_client"
    clock.advance(2)
    sweeps.expire_calls()
    assert stage.get(ToolCall, twin.id).status == "expired"
