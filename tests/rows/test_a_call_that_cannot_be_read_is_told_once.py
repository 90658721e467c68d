"""The model is told of a call whose input is not JSON. If its next reply has such a call again, the run ends."""

from typing import Any

from rows.stage import Stage, call, say

from models.pure.text import words


def broken() -> dict[str, Any]:
    """A call as a provider passes it on when its input is not JSON."""
    return call() | {"input": {}, "problem": "Expecting value: line 1 column 1 (char 0)"}


def test_the_model_is_told_and_the_other_calls_run(stage: Stage) -> None:
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    refused, allowed = stage.reply(session_id, broken(), call())
    assert (refused.status, allowed.status) == ("refused", "queued")
    assert "not a JSON object (Expecting value" in stage.result(refused)
    stage.run_call(allowed)
    [_, spoken, results] = stage.history(session_id)
    assert [block["input"] for block in spoken["content"]] == [{}, {"command": "true"}]
    assert [block["tool_use_id"] for block in results["content"]] == [refused.id, allowed.id]
    stage.reply(session_id, say("Sorry."))
    stage.check(session_id)


def test_the_second_time_in_a_row_the_run_ends_and_nothing_is_lost(stage: Stage) -> None:
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    stage.reply(session_id, broken())
    again, beside = stage.reply(session_id, broken(), call())
    assert (again.status, beside.status) == ("refused", "refused")
    assert stage.result(beside) == words.not_run_beside_broken()
    session = stage.read(session_id)
    assert (session.status, session.stop_reason) == ("idle", {"type": "retries_exhausted"})
    [error] = stage.events(session_id, "session.error")
    assert error.body["error"] == {
        "type": "model_request_failed_error",
        "message": words.broken_twice(),
        "retry_status": {"type": "terminal"},
    }
    stage.check(session_id)
    stage.message(session_id, "Go on.")
    stage.reply(session_id, say("Fine."))
    stage.check(session_id)


def test_a_readable_reply_in_between_begins_the_count_again(stage: Stage) -> None:
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    stage.reply(session_id, broken())
    stage.run_call(stage.reply(session_id, call())[0])
    stage.reply(session_id, broken())
    assert stage.read(session_id).status == "running"


def test_a_new_message_begins_the_count_again(stage: Stage) -> None:
    session_id = stage.session(max_turns=1)
    stage.message(session_id)
    stage.reply(session_id, broken())
    stage.message(session_id)
    stage.reply(session_id, broken())
    [*_, error] = stage.events(session_id, "session.error")
    assert error.body["error"]["type"] == "tool_use_limit_reached_error"
