"""After each way in which a run can end, every call has a result and the next message gets a normal reply."""

from typing import Any

import pytest
from rows.stage import Stage, call, say

from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn


def _goes_on(stage: Stage, session: str) -> None:
    stage.check(session)
    assert stage.read(session).status == "idle"
    stage.message(session, "And now?")
    stage.reply(session, say("All is well."))
    assert stage.events(session)[-1].body["stop_reason"] == {"type": "end_turn"}
    stage.check(session)


def test_interrupted_while_the_model_answers(stage: Stage) -> None:
    """The fence discards the reply, and its span is closed."""
    session = stage.session()
    stage.message(session)
    turn = stage.begin(session)
    stage.send(session, {"type": "user.interrupt"})
    assert stage.get(Turn, turn.id).status == "cancelled"
    assert stage.get(Turn, turn.id).fence > turn.fence
    assert len(stage.events(session, "span.model_request_end")) == 1
    _goes_on(stage, session)


def test_interrupted_before_the_turn_was_claimed(stage: Stage) -> None:
    """The message belongs to the ended run, and starts nothing."""
    session = stage.session()
    stage.message(session, "Never mind")
    stage.send(session, {"type": "user.interrupt"})
    assert stage.claim(session) is None
    assert stage.history(session)[0]["content"][0]["text"] == "Never mind"
    _goes_on(stage, session)


def test_interrupted_while_calls_wait_and_one_runs(stage: Stage) -> None:
    """Waiting calls are cancelled. The session is idle once the running call has ended, and its result is kept."""
    session = stage.session(bash="always_ask", read="always_allow")
    stage.message(session)
    asked, allowed = stage.reply(session, call(), call("read", file_path="x"))
    held = stage.begin_call(allowed)
    stage.send(session, {"type": "user.interrupt"})
    assert stage.read(session).status == "stopping"
    assert stage.get(ToolCall, asked.id).status == "cancelled"
    assert stage.get(ToolCall, allowed.id).cancel_requested_at
    assert stage.events(session)[-1].type != "session.status_idle"
    stage.finish_call(held, "half of it")
    assert stage.read(session).status == "idle"
    assert stage.result(allowed) == "half of it"
    _goes_on(stage, session)


def test_interrupted_while_a_call_runs_whose_worker_then_dies(stage: Stage, clock: Any) -> None:
    """Nobody is asked about the outcome, and the model is told that it is unknown."""
    session = stage.session(bash="always_allow")
    tool_call = stage.propose(session)
    held = stage.begin_call(tool_call)
    stage.send(session, {"type": "user.interrupt"})
    stage.lose(held, clock)
    assert "may or may not" in stage.result(tool_call)
    _goes_on(stage, session)


def test_interrupted_twice_and_interrupted_idle(stage: Stage) -> None:
    session = stage.session()
    stage.send(session, {"type": "user.interrupt"})
    assert [e.type for e in stage.events(session)] == ["user.interrupt"]
    stage.message(session)
    stage.reply(session, call())
    stage.send(session, {"type": "user.interrupt"}, {"type": "user.interrupt"})
    _goes_on(stage, session)


def test_ended_after_an_expired_call(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, call())
    clock.advance(90_000)
    stage.expire(session)
    stage.reply(session, say("Nobody was there."))
    _goes_on(stage, session)


def test_ended_at_the_turn_limit(stage: Stage) -> None:
    """Calls are refused, the reason is named, and the next message starts a new count."""
    session = stage.session(max_turns=2, bash="always_allow", glob="always_ask")
    tool_call = stage.propose(session)
    stage.run_call(tool_call)
    last, asked = stage.reply(session, call(), call("glob", pattern="*"))
    assert [last.status, asked.status] == ["refused", "refused"]
    assert "turn limit" in stage.result(last)
    assert stage.events(session, "session.error")[0].body["error"]["type"] == "tool_use_limit_reached_error"
    assert not stage.approvals(session)
    _goes_on(stage, session)


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "model_context_window_exceeded", "stop_sequence"])
def test_ended_by_the_model(stage: Stage, reason: str) -> None:
    """No call of a cut or refused reply runs, even a complete one."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    calls = stage.reply(session, say("Let me"), call(), stop_reason=reason)
    assert calls == []
    stop = stage.events(session)[-1].body["stop_reason"]["type"]
    assert stop == ("refusal" if reason == "refusal" else "end_turn")
    _goes_on(stage, session)


def test_a_refused_turn_is_not_sent_again(stage: Stage) -> None:
    """The model would refuse it again, so the history has neither the prompt nor the reply."""
    session = stage.session()
    stage.message(session, "Something bad")
    stage.reply(session, say("I"), stop_reason="refusal")
    stage.message(session, "Something good")
    assert str(stage.history(session)).count("Something") == 0
    stage.claim(session)
    assert "Something bad" not in str(stage.history(session))
    assert "Something good" in str(stage.history(session))


def test_ended_by_an_empty_reply(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, stop_reason="end_turn")
    _goes_on(stage, session)


def test_failed_for_good(stage: Stage) -> None:
    """The prompt that got no reply stays in the history."""
    session = stage.session()
    stage.message(session, "Are you there?")
    turn = stage.begin(session)
    stage.fail(turn, retryable=False)
    assert stage.events(session, "session.error")[-1].body["error"]["retry_status"] == {"type": "terminal"}
    _goes_on(stage, session)
    assert stage.history(session)[0]["content"] == [say("Are you there?"), say("And now?")]


def test_failed_by_a_prompt_that_the_model_cannot_accept(stage: Stage) -> None:
    """The prompt is not sent again with the next message."""
    session = stage.session()
    stage.message(session, "A broken picture")
    turn = stage.begin(session)
    stage.fail(turn, retryable=False, leave_out=True)
    _goes_on(stage, session)
    assert "broken picture" not in str(stage.history(session))


def test_ended_after_a_person_gave_up_on_an_unknown_outcome(stage: Stage, clock: Any) -> None:
    session = stage.session(bash="always_allow")
    tool_call = stage.propose(session)
    stage.lose(stage.begin_call(tool_call), clock)
    [approval] = stage.approvals(session)
    stage.decide(approval, outcome="give_up", deny_message="Leave it.")
    assert "Leave it." in stage.result(tool_call)
    stage.reply(session, say("I leave it."))
    _goes_on(stage, session)
