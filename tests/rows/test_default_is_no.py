"""A call runs only after its own approval was allowed in time, with the input that was shown."""

import json
from typing import Any

import psycopg
import pytest
from rows.stage import Stage, call, confirmation, say

from models.errors import Conflict, Invalid
from models.pure.json.canonical import digest
from models.session.approval.deadline import DeadlinePassed
from models.session.tool_call.row import ToolCall


def test_the_event_the_approval_and_the_call_have_one_hash(stage: Stage) -> None:
    session = stage.session()
    tool_call = stage.propose(session, call(command="echo é"))
    [approval] = stage.approvals(session)
    shown = stage.events(session, "agent.tool_use")[0].body["approval"]
    assert approval.input == '{"command":"echo é"}'
    assert shown["input_sha256"] == approval.input_sha256 == tool_call.input_sha256 == digest({"command": "echo é"})


def test_a_denial_reaches_the_model_in_plain_words(stage: Stage) -> None:
    session = stage.session()
    tool_call = stage.propose(session)
    stage.confirm(session, tool_call.id, "deny", deny_message="Not on a Friday.")
    [result] = stage.history(session)[-1]["content"]
    assert result["is_error"]
    assert "Not on a Friday." in result["content"][0]["text"]
    assert stage.claim_call(tool_call) is None
    stage.reply(session, say("Then on Monday."))
    assert stage.read(session).status == "idle"
    stage.check(session)


def test_a_denial_can_end_the_run(stage: Stage) -> None:
    """The other calls of the turn are cancelled, and the next message works."""
    session = stage.session()
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    stage.confirm(session, first.id, "deny", interrupt=True, deny_message="Stop.")
    assert stage.read(session).status == "idle"
    reason = {"type": "end_turn", "ended_by": str(stage.principal), "message": "Stop."}
    assert stage.events(session)[-1].body["stop_reason"] == reason
    assert stage.get(ToolCall, first.id).status == "denied"
    assert stage.get(ToolCall, second.id).status == "cancelled"
    stage.check(session)
    stage.message(session, "Something else")
    stage.reply(session, say("Sure."))
    stage.check(session)


def test_the_same_decision_again_is_a_no_op_and_another_is_a_conflict(stage: Stage) -> None:
    session = stage.session()
    tool_call = stage.propose(session)
    first = stage.confirm(session, tool_call.id)
    before = len(stage.events(session))
    again = stage.confirm(session, tool_call.id)
    assert again.id == first.id
    assert len(stage.events(session)) == before
    with pytest.raises(Conflict) as refused:
        stage.confirm(session, tool_call.id, "deny")
    assert refused.value.winner
    assert refused.value.winner["status"] == "allowed"


def test_a_decision_about_another_input_or_an_ended_call_is_a_conflict(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    stage.confirm(session, first.id)
    with pytest.raises(Conflict, match="already allowed"):
        stage.confirm(session, first.id, expected_input_sha256=second.input_sha256)
    stage.send(session, {"type": "user.interrupt"})
    ended = stage.approvals(session)[1].decision or {}
    with pytest.raises(Conflict, match="already cancelled"):
        stage.confirm(session, second.id, "deny", deny_message=ended["deny_message"])


def test_a_decision_of_another_session_releases_nothing(stage: Stage) -> None:
    ours, theirs = stage.session(), stage.session()
    for session in (ours, theirs):
        stage.message(session)
    [tool_call] = stage.reply(ours, call())
    stage.reply(theirs, call())
    with pytest.raises(Invalid, match=r"events.0.tool_use_id"):
        stage.confirm(theirs, tool_call.id)
    assert stage.get(ToolCall, tool_call.id).status == "asked"


def test_events_of_a_request_are_taken_all_or_none(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    first, _second = stage.reply(session, call(command="a"), call(command="b"))
    with pytest.raises(Invalid, match=r"events.1.tool_use_id"):
        stage.send(session, confirmation(first.id), confirmation("sevt_none"))
    assert stage.get(ToolCall, first.id).status == "asked"


def test_an_expiry_is_told_apart_from_a_denial(stage: Stage, clock: Any) -> None:
    """By default after a day."""
    session = stage.session()
    tool_call = stage.propose(session)
    clock.advance(86_399)
    assert stage.expire(session) == 0
    clock.advance(2)
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, tool_call.id).status == "expired"
    assert "within 1 day" in stage.result(tool_call)
    assert "refusal" in stage.result(tool_call)
    assert stage.events(session, "approval.expired")
    assert stage.events(session, "user.tool_confirmation")[0].body["result"] == "deny"
    stage.reply(session, say("Nobody was there."))
    stage.check(session)


def test_a_deadline_of_seconds_can_be_set_per_tool(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 3, "prompt": None}, bash="always_ask")
    tool_call = stage.propose(session)
    clock.advance(4)
    assert stage.expire(session) == 1
    assert "within 3 seconds" in stage.result(tool_call)


def test_a_late_decision_allows_nothing_before_or_after_the_sweep(stage: Stage, clock: Any) -> None:
    session = stage.session()
    tool_call = stage.propose(session)
    clock.advance(86_401)
    with pytest.raises(DeadlinePassed):
        stage.confirm(session, tool_call.id)
    assert stage.claim_call(tool_call) is None
    assert stage.expire(session) == 1
    with pytest.raises(Conflict):
        stage.confirm(session, tool_call.id)


def test_a_decision_on_another_hash_is_refused(stage: Stage) -> None:
    session = stage.session()
    tool_call = stage.propose(session)
    with pytest.raises(Conflict, match="expected_input_sha256"):
        stage.confirm(session, tool_call.id, expected_input_sha256="0" * 64)
    stage.confirm(session, tool_call.id, expected_input_sha256=tool_call.input_sha256)


def test_an_input_changed_in_the_database_does_not_run(stage: Stage, clean_database: Any) -> None:
    session = stage.session()
    tool_call = stage.propose(session, call(command="ls"))
    stage.confirm(session, tool_call.id)
    with psycopg.connect(clean_database.admin) as db:
        db.execute("""UPDATE call_input SET input = '{"command": "rm -rf /"}'""")
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "refused"
    assert "not the one that was approved" in stage.result(tool_call)
    stage.reply(session, say("Oh."))
    stage.check(session)


def test_a_call_that_the_policy_denies_is_never_asked(stage: Stage) -> None:
    session = stage.session(bash="never")
    tool_call = stage.propose(session)
    assert tool_call.status == "denied"
    assert not stage.approvals(session)
    assert stage.events(session, "agent.tool_use")[0].body["evaluated_permission"] == "deny"
    assert "not permitted" in stage.result(tool_call)
    stage.check(session)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (call("launch_missiles", n=1), "no tool named"),
        (call("write", file_path="x", content="y"), "no tool named"),
        (call("bash", nonsense=1), "schema"),
        (call("bash", command="a\x00b"), "NUL"),
        (call("bash", command=2**60), "exactly"),
        (call("bash", command=json.loads("[" * 60 + "]" * 60)), "nested deeper than 60 levels"),
    ],
)
def test_a_call_that_cannot_run_is_refused_without_asking_anybody(stage: Stage, block: dict[str, Any], words: str) -> None:
    """Unknown tools, tools that the agent does not have, and inputs that do not fit."""
    session = stage.session(bash="always_ask")
    stage.message(session)
    [tool_call] = stage.reply(session, block)
    assert tool_call.status == "refused"
    assert words in stage.result(tool_call)
    assert not stage.approvals(session)
    stage.reply(session, say("I see."))
    stage.check(session)


def test_the_model_sees_nothing_of_approvals(stage: Stage) -> None:
    """Roles alternate, and blocks have only fields of the Messages API."""
    session = stage.session()
    stage.message(session, "Go")
    [tool_call] = stage.reply(session, call())
    stage.confirm(session, tool_call.id)
    stage.run_call(tool_call)
    history = stage.history(session)
    assert [m["role"] for m in history] == ["user", "assistant", "user"]
    assert "appr" not in str(history)
    assert {k for m in history for b in m["content"] for k in b} <= {
        "type",
        "text",
        "id",
        "name",
        "input",
        "tool_use_id",
        "content",
        "is_error",
    }
