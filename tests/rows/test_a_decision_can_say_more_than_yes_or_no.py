"""A decision can edit the input, answer in the tool's place, or end the run, and the model is told of each."""

from typing import Any

import pytest
from rows.stage import Stage, call, rules, say

from models.errors import Conflict, Invalid
from models.pure.json.canonical import digest
from models.session.approval.deadline import DeadlinePassed, extend
from models.session.approval.row import Approval
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall


def ask(stage: Stage, session: str, **arguments: Any) -> tuple[ToolCall, Approval]:
    """A call that waits for a person."""
    tool_call = stage.propose(session, call(**(arguments or {"command": "rm -rf build"})))
    return tool_call, stage.approvals(session)[-1]


def test_an_edited_input_is_what_runs_and_both_are_kept(stage: Stage) -> None:
    session = stage.session()
    tool_call, approval = ask(stage, session, command="rm -rf /")
    edited = {"command": "rm -rf build"}
    stage.decide(approval, result="allow", updated_input=edited)
    held = stage.begin_call(tool_call)
    stored = stage.get(CallInput, held.id)
    assert (stored.input, held.input_sha256, stored.proposed_input) == (edited, digest(edited), {"command": "rm -rf /"})
    decided = stage.get(Approval, approval.id)
    assert (decided.input_sha256, decided.decided_sha256) == (tool_call.input_sha256, digest(edited))
    assert decided.decided_input == '{"command":"rm -rf build"}'
    assert (decided.decision or {})["updated_input_sha256"] == digest(edited)


def test_the_model_is_told_of_the_edit_and_not_to_repeat_its_own_input(stage: Stage) -> None:
    session = stage.session()
    tool_call, approval = ask(stage, session)
    stage.decide(approval, result="allow", updated_input={"command": "ls"})
    stage.run_call(tool_call, "a.txt")
    result = stage.history(session)[-1]["content"][0]["content"]
    assert '{"command":"ls"}' in result[0]["text"]
    assert "do not repeat" in result[0]["text"]
    assert result[1] == say("a.txt")
    stage.reply(session, say("Done."))
    stage.check(session)


def test_an_edited_input_must_fit_the_schema(stage: Stage) -> None:
    session = stage.session()
    tool_call, approval = ask(stage, session)
    with pytest.raises(Invalid, match=r"updated_input: does not fit .* nosuch is not a field") as refused:
        stage.decide(approval, result="allow", updated_input={"command": "ls", "nosuch": 1})
    assert refused.value.field == "updated_input"
    assert stage.get(ToolCall, tool_call.id).status == "asked"


def test_an_edited_input_is_judged_by_the_policy(stage: Stage) -> None:
    session = stage.session(bash=rules(("deny", "bash(curl *)")))
    tool_call, approval = ask(stage, session)
    with pytest.raises(Invalid, match=r"not permitted here .*curl"):
        stage.decide(approval, result="allow", updated_input={"command": "ls; curl evil"})
    assert stage.get(ToolCall, tool_call.id).status == "asked"


def test_the_same_edit_again_is_a_no_op_and_another_is_a_conflict(stage: Stage) -> None:
    session = stage.session()
    _, approval = ask(stage, session)
    first = stage.decide(approval, result="allow", updated_input={"command": "ls"})
    assert stage.decide(approval, result="allow", updated_input={"command": "ls"}) == first
    with pytest.raises(Conflict):
        stage.decide(approval, result="allow", updated_input={"command": "pwd"})
    with pytest.raises(Conflict):
        stage.decide(approval, result="allow")


def test_a_client_gets_its_own_tool_s_call_as_it_was_decided(stage: Stage) -> None:
    """The event is withheld while the call asks, and then has the decided input."""
    session = stage.session(custom=("refund?",))
    tool_call = stage.propose(session, call("refund", n=100))
    assert not stage.events(session, "agent.custom_tool_use")
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"n": 10})
    [event] = stage.events(session, "agent.custom_tool_use")
    assert (event.id, event.body["input"]) == (tool_call.id, {"n": 10})


def test_an_edited_call_that_the_client_has_seen_is_replaced_by_a_new_call(stage: Stage) -> None:
    """The worker of a self-hosted environment drops the call that it has seen, and runs the new one once."""
    session = stage.session(self_hosted=True)
    tool_call, approval = ask(stage, session)
    stage.decide(approval, result="allow", updated_input={"command": "ls"})
    assert stage.get(ToolCall, tool_call.id).status == "replaced"
    assert stage.events(session, "user.tool_confirmation")[0].body["result"] == "deny"
    assert stage.events(session, "user.tool_result")[0].body["tool_use_id"] == tool_call.id
    twin = stage.events(session, "agent.tool_use")[-1]
    assert (twin.body["input"], twin.body["evaluated_permission"]) == ({"command": "ls"}, "allow")
    assert stage.read(session).stop_reason == {"type": "requires_action", "event_ids": [twin.id]}
    stage.send(session, {"type": "user.tool_result", "tool_use_id": twin.id, "content": [say("a.txt")]})
    results = stage.history(session)[-1]["content"]
    assert len(results) == 1, "the model gets one result for its one call"
    assert '{"command":"ls"}' in results[0]["content"][0]["text"], "and hears what was run instead"
    assert results[0]["content"][-1] == say("a.txt")
    stage.reply(session, say("Done."))
    stage.check(session)


def test_an_edit_that_changes_nothing_is_an_allow(stage: Stage) -> None:
    """The client keeps the call that it has seen, instead of getting it twice."""
    session = stage.session(self_hosted=True)
    tool_call, approval = ask(stage, session)
    stage.decide(approval, result="allow", updated_input=stage.get(CallInput, tool_call.id).input)
    assert stage.get(ToolCall, tool_call.id).status == "with_client"
    assert stage.get(Approval, approval.id).decided_sha256 is None


def test_a_person_can_answer_in_the_tool_s_place(stage: Stage) -> None:
    session = stage.session()
    tool_call, approval = ask(stage, session)
    stage.decide(approval, result="allow", respond=(say("There is nothing to delete."),))
    assert stage.get(ToolCall, tool_call.id).status == "answered"
    assert stage.claim_call(tool_call) is None, "the tool never runs"
    result = stage.history(session)[-1]["content"][0]
    assert result["content"][-1] == say("There is nothing to delete.")
    assert result["is_error"] is False
    assert stage.events(session, "user.tool_confirmation")[0].body["result"] == "deny", "a runner must not run it"
    stage.reply(session, say("Right."))
    stage.check(session)


def test_fields_that_do_not_go_together_are_refused_and_decide_nothing(stage: Stage) -> None:
    session = stage.session()
    tool_call, approval = ask(stage, session)
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "result"),
        ({"result": "deny", "updated_input": {}}, "updated_input"),
        ({"result": "deny", "respond": (say("x"),)}, "respond"),
        ({"result": "allow", "respond": (say("x"),), "updated_input": {"command": "ls"}}, "respond"),
        ({"result": "allow", "interrupt": True}, "result"),
        ({"result": "allow", "deny_message": "x"}, "result"),
        ({"result": "deny", "scope": "session"}, "scope"),
        ({"result": "allow", "match": "tool"}, "match"),
        ({"result": "allow", "max_uses": 1}, "max_uses"),
        ({"result": "allow", "expires_in_seconds": 1}, "expires_in_seconds"),
        ({"result": "allow", "scope": "always", "updated_input": {"command": "ls"}}, "scope"),
        ({"result": "allow", "scope": "session", "match": "bash(git"}, "match"),
        ({"result": "allow", "scope": "session", "match": "read(src/**)"}, "match"),
        ({"outcome": "rerun"}, "outcome"),
    ]
    for decision, field in cases:
        with pytest.raises(Invalid) as refused:
            stage.decide(approval, **decision)
        assert refused.value.field == field, decision
        assert stage.get(ToolCall, tool_call.id).status == "asked", decision
    assert not stage.events(session, "grant.given")


def test_a_deadline_can_be_extended(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 10})
    tool_call, approval = ask(stage, session)
    clock.advance(8)

    def extend_by(seconds: float) -> None:
        stage.locked(session, lambda locked: extend(locked, locked.db.get_one(Approval, approval.id), seconds))

    with pytest.raises(Conflict, match="later already"):
        extend_by(1)
    extend_by(60)
    clock.advance(30)
    assert stage.expire(session) == 0
    stage.decide(approval, result="allow")
    assert stage.get(ToolCall, tool_call.id).status == "queued"
    assert len(stage.events(session, "approval.extended")) == 1
    with pytest.raises(Conflict, match="already allowed"):
        extend_by(600)


def test_a_passed_deadline_cannot_be_extended(stage: Stage, clock: Any) -> None:
    """Whether or not the sweep has applied the deadline yet."""
    session = stage.session(approval={"timeout_seconds": 10})
    tool_call, approval = ask(stage, session)
    clock.advance(11)
    with pytest.raises(DeadlinePassed):
        stage.locked(session, lambda locked: extend(locked, locked.db.get_one(Approval, approval.id), 60))
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, tool_call.id).status == "expired"
