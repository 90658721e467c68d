"""A turn is claimed once, its reply is stored once, and its calls wait as rows."""

from typing import Any

import pytest
from rows.stage import Stage, call, say

from models.database.rows import Stale
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn


def test_a_message_starts_a_turn_and_its_reply_ends_the_run(stage: Stage) -> None:
    session = stage.session()
    stage.message(session, "Hello")
    assert stage.read(session).status == "running"
    stage.reply(session, say("Hi."))
    assert stage.read(session).status == "idle"
    assert [e.type for e in stage.events(session)] == [
        "user.message",
        "session.status_running",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.usage",
        "session.status_idle",
    ]
    assert stage.events(session)[-1].body["stop_reason"] == {"type": "end_turn"}
    stage.check(session)


def test_a_turn_and_a_call_are_claimed_once(stage: Stage) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    turn = stage.claim(session)
    assert stage.claim(session) is None
    [tool_call] = stage.reply(session, call(), turn=turn)
    assert stage.claim_call(tool_call)
    before = len(stage.events(session))
    assert stage.claim_call(tool_call) is None
    assert len(stage.events(session)) == before


def test_a_reply_with_an_old_fence_is_discarded(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    zombie = stage.begin(session)
    stage.lose(zombie, clock)
    heir = stage.begin(session)
    assert heir.fence > zombie.fence
    with pytest.raises(Stale):
        stage.reply(session, say("I am late."), turn=zombie)
    stage.reply(session, say("I am in time."), turn=heir)
    assert [e.body["content"][0]["text"] for e in stage.events(session, "agent.message")] == ["I am in time."]
    stage.check(session)


def test_allowed_calls_run_while_others_wait(stage: Stage) -> None:
    session = stage.session(bash="always_ask", read="always_allow")
    stage.message(session)
    first, second, third = stage.reply(session, call(command="a"), call("read", file_path="x"), call(command="b"))
    assert [first.status, second.status, third.status] == ["asked", "queued", "asked"]
    assert stage.claim_call(first) is None
    stage.run_call(second)
    assert stage.read(session).status == "waiting"
    idle = stage.events(session, "session.status_idle")
    assert [e.body["stop_reason"]["event_ids"] for e in idle] == [[first.id, third.id]]
    stage.check(session)


def test_the_next_turn_starts_when_the_last_call_is_settled(stage: Stage) -> None:
    """Whatever the order of the decisions, the results are in the order of the calls."""
    session = stage.session(bash="always_ask")
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    stage.confirm(session, second.id)
    assert stage.events(session)[-1].body["stop_reason"]["event_ids"] == [first.id]
    stage.run_call(second, "from b")
    assert stage.claim(session) is None
    stage.confirm(session, first.id)
    stage.run_call(first, "from a")
    assert stage.thread(session).turn_number == 2
    results = stage.history(session)[-1]["content"]
    assert [r["content"][0]["text"] for r in results] == ["from a", "from b"]
    stage.reply(session, say("Done."))
    stage.check(session)


def test_usage_is_counted_over_the_session(stage: Stage) -> None:
    session = stage.session(bash="always_allow")
    tool_call = stage.propose(session)
    stage.run_call(tool_call)
    stage.reply(session, say("Done."))
    assert stage.read(session).usage["input_tokens"] == 20
    assert stage.events(session, "session.usage")[-1].body["usage"]["output_tokens"] == 10


def test_a_lost_worker_costs_an_attempt_and_three_end_the_run(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    for _ in range(3):
        turn = stage.begin(session)
        stage.lose(turn, clock)
    assert stage.get(Turn, turn.id).status == "failed"
    error = stage.events(session, "session.error")[-1].body["error"]
    assert error["retry_status"] == {"type": "exhausted"}
    assert "3 times" in error["message"]
    assert stage.history(session)[0]["content"] == [say("Do it.")], "the message stays in the history"
    assert stage.events(session)[-1].body["stop_reason"] == {"type": "retries_exhausted"}
    stage.check(session)


def test_a_lease_that_has_not_ended_is_not_taken_over(stage: Stage, clock: Any) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    turn = stage.begin(session)
    clock.advance(44)
    stage.rescue(turn)
    [tool_call] = stage.reply(session, call(), turn=turn)
    held = stage.begin_call(tool_call)
    clock.advance(44)
    stage.rescue(held)
    assert stage.get(ToolCall, tool_call.id).status == "running"


def test_a_passing_error_is_tried_again_later(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    turn = stage.begin(session)
    stage.fail(turn, retry_after=30)
    assert stage.read(session).status == "rescheduling"
    assert [e.type for e in stage.events(session)][-3:] == ["span.model_request_end", "session.error", "session.status_rescheduled"]
    assert stage.claim(session) is None
    clock.advance(31)
    stage.reply(session, say("Now."))
    assert stage.read(session).status == "idle"
    stage.check(session)


def test_errors_without_end_exhaust_the_retries(stage: Stage, clock: Any) -> None:
    """After six attempts by default. A later message works."""
    session = stage.session()
    stage.message(session)
    for _ in range(6):
        clock.advance(120)
        turn = stage.begin(session)
        stage.fail(turn)
    assert stage.events(session)[-1].body["stop_reason"] == {"type": "retries_exhausted"}
    stage.message(session, "Again")
    stage.reply(session, say("Here I am."))
    stage.check(session)
