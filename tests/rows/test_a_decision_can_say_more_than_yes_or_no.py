"""R12: allow with another input, answer in the tool's place, deny and end the run; and what the model hears of each."""

from typing import Any

import pytest
from rows.stage import Stage, call, rules, say

from models import flow
from models.database.transactions import transaction
from models.errors import Conflict, Invalid
from models.pure.canonical import digest
from models.session.approval import Approval
from models.session.approval_deadline import DeadlinePassed, extend
from models.session.call_input import CallInput
from models.session.tool_call import ToolCall


def asked(stage: Stage, session: str, **arguments: Any) -> tuple[ToolCall, Approval]:
    """A call that waits for a person."""
    stage.message(session)
    [found] = stage.reply(session, call(**(arguments or {"command": "rm -rf build"})))
    return found, stage.approvals(session)[-1]


def test_an_edited_input_is_what_runs_and_both_are_kept(stage: Stage) -> None:
    session = stage.session()
    found, approval = asked(stage, session, command="rm -rf /")
    edited = {"command": "rm -rf build"}
    stage.decide(approval, result="allow", updated_input=edited)
    held = stage.claim_call(found)
    assert held
    stored = stage.get(CallInput, held.id)
    assert (stored.input, held.input_sha256, stored.proposed_input) == (edited, digest(edited), {"command": "rm -rf /"})
    decided = stage.get(Approval, approval.id)
    assert (decided.input_sha256, decided.decided_sha256) == (found.input_sha256, digest(edited))
    assert decided.decided_input == '{"command":"rm -rf build"}'
    assert (decided.decision or {})["updated_input_sha256"] == digest(edited)


def test_the_model_hears_that_its_input_was_changed_and_is_not_invited_to_repeat_it(stage: Stage) -> None:
    session = stage.session()
    found, approval = asked(stage, session)
    stage.decide(approval, result="allow", updated_input={"command": "ls"})
    stage.run_call(found, "a.txt")
    told = stage.history(session)[-1]["content"][0]["content"]
    assert '{"command":"ls"}' in told[0]["text"]
    assert "do not repeat" in told[0]["text"]
    assert told[1] == say("a.txt")
    stage.reply(session, say("Done."))
    stage.check(session)


def test_an_edited_input_goes_through_the_schema_again(stage: Stage) -> None:
    session = stage.session()
    found, approval = asked(stage, session)
    with pytest.raises(Invalid, match=r"updated_input: does not fit .* nosuch is not a field") as refused:
        stage.decide(approval, result="allow", updated_input={"command": "ls", "nosuch": 1})
    assert refused.value.field == "updated_input"
    assert stage.get(ToolCall, found.id).status == "asked"


def test_an_edited_input_goes_through_the_policy_again(stage: Stage) -> None:
    """R10: nobody can edit a call into one that a rule denies."""
    session = stage.session(bash=rules(("deny", "bash(curl *)")))
    found, approval = asked(stage, session)
    with pytest.raises(Invalid, match=r"not permitted here .*curl"):
        stage.decide(approval, result="allow", updated_input={"command": "ls; curl evil"})
    assert stage.get(ToolCall, found.id).status == "asked"


def test_the_same_edit_again_is_nothing_and_another_is_a_conflict(stage: Stage) -> None:
    session = stage.session()
    _, approval = asked(stage, session)
    first = stage.decide(approval, result="allow", updated_input={"command": "ls"})
    assert stage.decide(approval, result="allow", updated_input={"command": "ls"}) == first
    with pytest.raises(Conflict):
        stage.decide(approval, result="allow", updated_input={"command": "pwd"})
    with pytest.raises(Conflict):
        stage.decide(approval, result="allow")


def test_a_client_gets_its_own_tool_s_call_as_it_was_decided(stage: Stage) -> None:
    """The event of a client's call that asks is withheld, and comes out with the decided input."""
    session = stage.session(custom=("refund?",))
    stage.message(session)
    [found] = stage.reply(session, call("refund", n=100))
    assert not stage.events(session, "agent.custom_tool_use")
    stage.decide(stage.approvals(session)[0], result="allow", updated_input={"n": 10})
    [event] = stage.events(session, "agent.custom_tool_use")
    assert (event.id, event.body["input"]) == (found.id, {"n": 10})


def test_a_call_that_the_client_has_seen_is_replaced_by_another(stage: Stage) -> None:
    """The worker of a self-hosted environment holds the call as it was: it drops that one and runs the new one, once."""
    session = stage.session(self_hosted=True)
    found, approval = asked(stage, session)
    stage.decide(approval, result="allow", updated_input={"command": "ls"})
    assert stage.get(ToolCall, found.id).status == "replaced"
    assert stage.events(session, "user.tool_confirmation")[0].body["result"] == "deny"
    assert stage.events(session, "user.tool_result")[0].body["tool_use_id"] == found.id
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
    """The client has seen this very call: it is not taken from it and given to it once more."""
    session = stage.session(self_hosted=True)
    found, approval = asked(stage, session)
    stage.decide(approval, result="allow", updated_input=stage.get(CallInput, found.id).input)
    assert stage.get(ToolCall, found.id).status == "with_client"
    assert stage.get(Approval, approval.id).decided_sha256 is None


def test_a_person_can_answer_in_the_tool_s_place(stage: Stage) -> None:
    session = stage.session()
    found, approval = asked(stage, session)
    stage.decide(approval, result="allow", respond=(say("There is nothing to delete."),))
    assert stage.get(ToolCall, found.id).status == "answered"
    assert stage.claim_call(found) is None, "the tool never runs"
    told = stage.history(session)[-1]["content"][0]
    assert told["content"][-1] == say("There is nothing to delete.")
    assert told["is_error"] is False
    assert stage.events(session, "user.tool_confirmation")[0].body["result"] == "deny", "a runner must not run it"
    stage.reply(session, say("Right."))
    stage.check(session)


def test_an_end_says_by_whom_and_why(stage: Stage) -> None:
    session = stage.session()
    _, approval = asked(stage, session)
    stage.decide(approval, result="deny", interrupt=True, deny_message="Not on a Friday.")
    said = stage.read(session).stop_reason
    assert said == {"type": "end_turn", "ended_by": str(stage.principal), "message": "Not on a Friday."}


@pytest.mark.parametrize(
    ("said", "field"),
    [
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
    ],
)
def test_what_does_not_go_together_is_refused_and_decides_nothing(stage: Stage, said: dict[str, Any], field: str) -> None:
    session = stage.session()
    found, approval = asked(stage, session)
    with pytest.raises(Invalid) as refused:
        stage.decide(approval, **said)
    assert refused.value.field == field
    assert stage.get(ToolCall, found.id).status == "asked"
    assert not stage.events(session, "grant.given")


def test_a_decision_can_be_given_more_time(stage: Stage, clock: Any) -> None:
    """R14: an extension moves the deadline, is told, and can be decided until then."""
    session = stage.session(approval={"timeout_seconds": 10})
    found, approval = asked(stage, session)
    clock.advance(8)

    def extend_by(seconds: float) -> None:
        with transaction(stage.workspace_id) as db:
            held = flow.lock(db, session)
            extend(db, held, db.get_one(Approval, approval.id), stage.principal, seconds)

    with pytest.raises(Conflict, match="later already"):
        extend_by(1)
    extend_by(60)
    clock.advance(30)
    assert stage.expire(session) == 0
    stage.decide(approval, result="allow")
    assert stage.get(ToolCall, found.id).status == "queued"
    assert len(stage.events(session, "approval.extended")) == 1
    with pytest.raises(Conflict, match="already allowed"):
        extend_by(600)


def test_time_that_is_over_cannot_be_given(stage: Stage, clock: Any) -> None:
    """Default is no: what was too late to be decided stays so, sweep or no sweep."""
    session = stage.session(approval={"timeout_seconds": 10})
    found, approval = asked(stage, session)
    clock.advance(11)
    with pytest.raises(DeadlinePassed):
        stage.locked(session, lambda db, row: extend(db, row, db.get_one(Approval, approval.id), stage.principal, 60))
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, found.id).status == "expired"
