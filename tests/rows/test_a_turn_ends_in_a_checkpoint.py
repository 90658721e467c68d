"""R1, R2, R4, R5: a turn is claimed once, its reply is kept once, and what it asks for waits in rows."""

from typing import Any

import pytest
from rows.stage import Stage, call, say

from models.database.rows import Stale
from models.session.tool_call import ToolCall
from models.session.turn import Turn


def test_a_message_starts_a_turn_and_its_reply_ends_the_run(stage: Stage) -> None:
    """Text in, text out: idle, running, idle."""
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


def test_a_doubled_message_finds_nothing_to_claim(stage: Stage) -> None:
    """The second claim of a turn, and of a call, is None and changes nothing."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    turn = stage.claim(session)
    assert stage.claim(session) is None
    [found] = stage.reply(session, call(), turn=turn)
    assert stage.claim_call(found)
    before = len(stage.events(session))
    assert stage.claim_call(found) is None
    assert len(stage.events(session)) == before


def test_a_reply_with_an_old_fence_is_discarded(stage: Stage, clock: Any) -> None:
    """I7: a worker that was thought dead and comes back writes nothing."""
    session = stage.session()
    stage.message(session)
    zombie = stage.claim(session)
    assert zombie
    clock.advance(60)
    stage.rescue(zombie)
    heir = stage.claim(session)
    assert heir
    assert heir.fence > zombie.fence
    with pytest.raises(Stale):
        stage.reply(session, say("I am late."), turn=zombie)
    stage.reply(session, say("I am in time."), turn=heir)
    assert [e.body["content"][0]["text"] for e in stage.events(session, "agent.message")] == ["I am in time."]
    stage.check(session)


def test_allowed_calls_run_while_others_wait(stage: Stage) -> None:
    """R4, I6: three calls, one allowed by policy: it is queued at once, the others are asked, and only it can be claimed."""
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
    """Decisions in any order; one next turn; results in the order of the calls."""
    session = stage.session(bash="always_ask")
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    stage.confirm(session, second.id)
    assert stage.events(session)[-1].body["stop_reason"]["event_ids"] == [first.id]
    stage.run_call(second, "from b")
    assert stage.claim(session) is None
    stage.confirm(session, first.id)
    stage.run_call(first, "from a")
    assert stage.read(session).turn_number == 2
    results = stage.history(session)[-1]["content"]
    assert [r["content"][0]["text"] for r in results] == ["from a", "from b"]
    stage.reply(session, say("Done."))
    stage.check(session)


def test_usage_is_counted_over_the_session(stage: Stage) -> None:
    """Every reply adds its tokens, and says so in its span."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call())
    stage.run_call(found)
    stage.reply(session, say("Done."))
    assert stage.read(session).usage["input_tokens"] == 20
    assert stage.events(session, "session.usage")[-1].body["usage"]["output_tokens"] == 10


def test_a_lost_worker_costs_an_attempt_and_three_end_the_run(stage: Stage, clock: Any) -> None:
    """Fault 9: a turn that kills its worker every time stops after three attempts and says so."""
    session = stage.session()
    stage.message(session)
    for _ in range(3):
        turn = stage.claim(session)
        assert turn
        clock.advance(60)
        stage.rescue(turn)
    assert stage.get(Turn, turn.id).status == "failed"
    error = stage.events(session, "session.error")[-1].body["error"]
    assert error["retry_status"] == {"type": "exhausted"}
    assert "3 times" in error["message"]
    assert stage.history(session)[0]["content"] == [say("Do it.")], "what was asked is not forgotten"
    assert stage.events(session)[-1].body["stop_reason"] == {"type": "retries_exhausted"}
    stage.check(session)


def test_a_live_lease_is_not_taken(stage: Stage, clock: Any) -> None:
    """A rescue that comes too early does nothing."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    turn = stage.claim(session)
    assert turn
    clock.advance(44)
    stage.rescue(turn)
    [found] = stage.reply(session, call(), turn=turn)
    held = stage.claim_call(found)
    assert held
    clock.advance(44)
    stage.rescue(held)
    assert stage.get(ToolCall, found.id).status == "running"


def test_a_passing_error_is_tried_again_later(stage: Stage, clock: Any) -> None:
    """Back-off: `rescheduling`, not due before its time, and due then."""
    session = stage.session()
    stage.message(session)
    turn = stage.claim(session)
    assert turn
    stage.fail(turn, retry_after=30)
    assert stage.read(session).status == "rescheduling"
    assert [e.type for e in stage.events(session)][-3:] == ["span.model_request_end", "session.error", "session.status_rescheduled"]
    assert stage.claim(session) is None
    clock.advance(31)
    stage.reply(session, say("Now."))
    assert stage.read(session).status == "idle"
    stage.check(session)


def test_errors_without_end_exhaust_the_retries(stage: Stage, clock: Any) -> None:
    """Six tries by default, then idle with `retries_exhausted`, and a later message works."""
    session = stage.session()
    stage.message(session)
    for _ in range(6):
        clock.advance(120)
        turn = stage.claim(session)
        assert turn
        stage.fail(turn)
    assert stage.events(session)[-1].body["stop_reason"] == {"type": "retries_exhausted"}
    stage.message(session, "Again")
    stage.reply(session, say("Here I am."))
    stage.check(session)


def test_an_error_that_cannot_pass_ends_the_run_at_once(stage: Stage) -> None:
    """A refused request is not tried again."""
    session = stage.session()
    stage.message(session)
    turn = stage.claim(session)
    assert turn
    stage.fail(turn, retryable=False)
    assert stage.events(session, "session.error")[-1].body["error"]["retry_status"] == {"type": "terminal"}
    assert stage.read(session).status == "idle"
    stage.check(session)
