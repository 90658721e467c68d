"""R12, R13, R16, R17, I4, I5, I6: a call runs only after its own approval was allowed in time, with the input that was shown."""

import json
from typing import Any

import psycopg
import pytest
from rows.stage import Stage, call, confirmation, say

from models.errors import Conflict, Invalid
from models.pure.canonical import digest
from models.session.approval_deadline import DeadlinePassed
from models.session.tool_call import ToolCall


def test_shown_decided_and_run_are_one_hash(stage: Stage) -> None:
    """I5: the event, the approval, the call and the attempt carry the same SHA-256."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call(command="echo é"))
    [approval] = stage.approvals(session)
    shown = stage.events(session, "agent.tool_use")[0].body["approval"]
    assert approval.input == '{"command":"echo é"}'
    assert shown["input_sha256"] == approval.input_sha256 == found.input_sha256 == digest({"command": "echo é"})


def test_a_denial_reaches_the_model_in_plain_words(stage: Stage) -> None:
    """R13: an error result with the person's words, and the run goes on another way."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call())
    stage.confirm(session, found.id, "deny", deny_message="Not on a Friday.")
    [result] = stage.history(session)[-1]["content"]
    assert result["is_error"]
    assert "Not on a Friday." in result["content"][0]["text"]
    assert stage.claim_call(found) is None
    stage.reply(session, say("Then on Monday."))
    assert stage.read(session).status == "idle"
    stage.check(session)


def test_a_denial_can_end_the_run(stage: Stage) -> None:
    """R12: deny with interrupt: no further model call, the siblings are cancelled, and the next message works."""
    session = stage.session()
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    stage.confirm(session, first.id, "deny", interrupt=True, deny_message="Stop.")
    assert stage.read(session).status == "idle"
    said = {"type": "end_turn", "ended_by": str(stage.principal), "message": "Stop."}
    assert stage.events(session)[-1].body["stop_reason"] == said
    assert stage.get(ToolCall, first.id).status == "denied"
    assert stage.get(ToolCall, second.id).status == "cancelled"
    stage.check(session)
    stage.message(session, "Something else")
    stage.reply(session, say("Sure."))
    stage.check(session)


def test_the_same_decision_again_is_nothing_and_another_is_a_conflict(stage: Stage) -> None:
    """I4: the first wins; others get the winner."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call())
    first = stage.confirm(session, found.id)
    before = len(stage.events(session))
    again = stage.confirm(session, found.id)
    assert again.id == first.id
    assert len(stage.events(session)) == before
    with pytest.raises(Conflict) as refused:
        stage.confirm(session, found.id, "deny")
    assert refused.value.winner
    assert refused.value.winner["status"] == "allowed"


def test_the_same_word_about_something_else_is_no_repetition(stage: Stage) -> None:
    """I4: who was shown another input, or denies what an end of the run had taken back, is told what became of it."""
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
    """R16: the call is looked for in the session that the decision was posted to."""
    ours, theirs = stage.session(), stage.session()
    for session in (ours, theirs):
        stage.message(session)
    [found] = stage.reply(ours, call())
    stage.reply(theirs, call())
    with pytest.raises(Invalid, match=r"events.0.tool_use_id"):
        stage.confirm(theirs, found.id)
    assert stage.get(ToolCall, found.id).status == "asked"


def test_another_workspace_finds_nothing(stage: Stage) -> None:
    """I10: row-level security hides the session itself."""
    session = stage.session()
    stage.message(session)
    with pytest.raises(Exception, match="not found"):
        Stage().message(session)


def test_half_of_a_post_is_never_kept(stage: Stage) -> None:
    """Events are taken all or none."""
    session = stage.session()
    stage.message(session)
    first, _second = stage.reply(session, call(command="a"), call(command="b"))
    with pytest.raises(Invalid, match=r"events.1.tool_use_id"):
        stage.send(session, confirmation(first.id), confirmation("sevt_none"))
    assert stage.get(ToolCall, first.id).status == "asked"


def test_an_expiry_is_told_apart_from_a_denial(stage: Stage, clock: Any) -> None:
    """R14: own status, own words to the model, default deadline of a day."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call())
    clock.advance(86_399)
    assert stage.expire(session) == 0
    clock.advance(2)
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, found.id).status == "expired"
    assert "within 1 day" in stage.result(found)
    assert "refusal" in stage.result(found)
    assert stage.events(session, "approval.expired")
    assert stage.events(session, "user.tool_confirmation")[0].body["result"] == "deny"
    stage.reply(session, say("Nobody was there."))
    stage.check(session)


def test_a_deadline_can_be_set_per_tool_and_seconds_work(stage: Stage, clock: Any) -> None:
    """R14."""
    session = stage.session(approval={"timeout_seconds": 3, "prompt": None}, bash="always_ask")
    stage.message(session)
    [found] = stage.reply(session, call())
    clock.advance(4)
    assert stage.expire(session) == 1
    assert "within 3 seconds" in stage.result(found)


def test_a_late_decision_releases_nothing_sweep_or_no_sweep(stage: Stage, clock: Any) -> None:
    """I6: the deadline is checked under the lock, not left to beat."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call())
    clock.advance(86_401)
    with pytest.raises(DeadlinePassed):
        stage.confirm(session, found.id)
    assert stage.claim_call(found) is None
    assert stage.expire(session) == 1
    with pytest.raises(Conflict):
        stage.confirm(session, found.id)


def test_a_decision_on_another_hash_is_refused(stage: Stage) -> None:
    """R17: who saw something else decides nothing."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call())
    with pytest.raises(Conflict, match="expected_input_sha256"):
        stage.confirm(session, found.id, expected_input_sha256="0" * 64)
    stage.confirm(session, found.id, expected_input_sha256=found.input_sha256)


def test_an_input_changed_in_the_database_is_refused_when_it_would_run(stage: Stage, clean_database: Any) -> None:
    """Fault 27, I5: the executor hashes what it is about to pass, and the audit has the alarm."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call(command="ls"))
    stage.confirm(session, found.id)
    with psycopg.connect(clean_database.admin) as db:
        db.execute("""UPDATE call_input SET input = '{"command": "rm -rf /"}'""")
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "refused"
    assert "not the one that was approved" in stage.result(found)
    stage.reply(session, say("Oh."))
    stage.check(session)


def test_what_the_policy_denies_is_never_asked(stage: Stage) -> None:
    """R9: the model is told, nobody is asked, runners are told to keep off."""
    session = stage.session(bash="never")
    stage.message(session)
    [found] = stage.reply(session, call())
    assert found.status == "denied"
    assert not stage.approvals(session)
    assert stage.events(session, "agent.tool_use")[0].body["evaluated_permission"] == "deny"
    assert "not permitted" in stage.result(found)
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
def test_what_could_not_run_is_refused_before_anybody_is_asked(stage: Stage, block: dict[str, Any], words: str) -> None:
    """R25, R26: unknown tools, tools that were not given, and inputs that do not fit."""
    session = stage.session(bash="always_ask")
    stage.message(session)
    [found] = stage.reply(session, block)
    assert found.status == "refused"
    assert words in stage.result(found)
    assert not stage.approvals(session)
    stage.reply(session, say("I see."))
    stage.check(session)


def test_the_model_never_sees_the_approval_machinery(stage: Stage) -> None:
    """R31: roles alternate, blocks are the Messages API's own, nothing of ours in them."""
    session = stage.session()
    stage.message(session, "Go")
    [found] = stage.reply(session, call())
    stage.confirm(session, found.id)
    stage.run_call(found)
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
