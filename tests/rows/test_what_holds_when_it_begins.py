"""Rules and grants are judged again when a person allows a call and when the call begins."""

from typing import Any

import pytest
from rows.stage import Stage, call, rules, say

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.decide.deadlines import too_late
from models.flow.judge.grants import release_waiting
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall

NO_RM = rules(("deny", "bash(rm *)"))


def ask(stage: Stage, session: str, command: str = "rm x") -> ToolCall:
    """A call of bash."""
    return stage.propose(session, call(command=command))


def decide(stage: Stage, session: str, **decision: Any) -> str:
    """Decide the last approval."""
    return stage.decide(stage.approvals(session)[-1], **decision)


@pytest.mark.parametrize("policy", ["always_ask", "always_allow"])
def test_a_call_that_a_new_rule_denies_does_not_begin(stage: Stage, policy: str) -> None:
    session = stage.session(bash=policy)
    tool_call = ask(stage, session)
    if policy == "always_ask":
        decide(stage, session, result="allow")
    stage.change_policies(policy=NO_RM)
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "refused"
    assert "not permitted" in stage.result(tool_call)
    stage.reply(session, say("I see."))
    stage.check(session)


def test_a_lost_call_that_a_new_rule_denies_may_have_taken_effect(stage: Stage, clock: Any) -> None:
    session = stage.session(write="always_allow")
    tool_call = stage.propose(session, call("write", file_path="a", content="b"))
    stage.lose(stage.begin_call(tool_call), clock)
    stage.change_policies(policy=rules(("deny", "write")))
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "cancelled"
    assert "may or may not" in stage.result(tool_call)


def test_a_lost_call_whose_grant_was_revoked_and_that_a_person_denies_may_have_taken_effect(stage: Stage, clock: Any) -> None:
    session = stage.session(write="always_ask")
    write = call("write", file_path="a", content="b")
    stage.message(session)
    [first] = stage.reply(session, write)
    decide(stage, session, result="allow", scope="session")
    stage.run_call(first)
    [tool_call] = stage.reply(session, write | {"id": "toolu_2"})
    stage.lose(stage.begin_call(tool_call), clock)
    stage.revoke_grants()
    assert stage.claim_call(tool_call) is None
    decide(stage, session, result="deny")
    assert stage.get(ToolCall, tool_call.id).status == "cancelled"
    assert "may or may not" in stage.result(tool_call)


def test_a_call_that_a_new_rule_denies_can_only_be_denied(stage: Stage) -> None:
    session = stage.session()
    tool_call = ask(stage, session)
    stage.change_policies(policy=NO_RM)
    with pytest.raises(Conflict, match="not permitted any more"):
        decide(stage, session, result="allow")
    assert stage.get(ToolCall, tool_call.id).status == "asked"
    decide(stage, session, result="deny")


def test_a_call_that_a_grant_allowed_is_asked_if_a_new_rule_asks(stage: Stage) -> None:
    session = stage.session()
    ask(stage, session, command="ls")
    decide(stage, session, result="allow", scope="session")
    stage.run_call(stage.get(ToolCall, stage.approvals(session)[0].tool_call_id))
    [tool_call] = stage.reply(session, call(command="git push"))
    stage.change_policies(policy=rules(("ask", "bash(git push *)")))
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "asked"
    assert stage.approvals(session)[-1].kind == "tool_call"


def test_an_edit_from_true_to_1_is_an_edit(stage: Stage) -> None:
    """Though True equals 1 in Python."""
    session = stage.session(custom=("refund?",))
    tool_call = stage.propose(session, call("refund", n=1, dry_run=True))
    decide(stage, session, result="allow", updated_input={"n": 1, "dry_run": 1})
    assert stage.get(CallInput, tool_call.id).input["dry_run"] is not True
    assert stage.events(session, "agent.custom_tool_use")[0].body["input"] == {"n": 1, "dry_run": 1}


def test_a_grant_for_a_client_s_tool_does_not_cover_a_built_in_tool_of_the_same_name(stage: Stage) -> None:
    stage.propose(custom := stage.session(custom=("lookup?",)), call("lookup", n=1))
    decide(stage, custom, result="allow", scope="always")
    with transaction(stage.workspace_id) as db:
        grant = db.find(Grant)[0]
        grant.tool, grant.match = "bash", "bash"
    session = stage.session(of_agent=grant.agent_id)
    stage.message(session)
    assert [c.status for c in stage.reply(session, call(command="rm -rf /srv"))] == ["asked"]
    assert release_waiting(stage.workspace_id, session) == 0


def test_a_person_s_rerun_needs_no_grant(stage: Stage, clock: Any) -> None:
    session = stage.session()
    ask(stage, session, command="ls")
    decide(stage, session, result="allow", scope="session")
    stage.run_call(stage.get(ToolCall, stage.approvals(session)[0].tool_call_id))
    [tool_call] = stage.reply(session, call(command="make deploy"))
    stage.lose(stage.begin_call(tool_call), clock)
    stage.revoke_grants()
    decide(stage, session, outcome="rerun")
    assert stage.claim_call(tool_call)


def test_a_late_decision_is_told_the_outcome_of_the_deadline(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    tool_call = ask(stage, session, command="ls")
    approval = stage.approvals(session)[0]
    clock.advance(61)
    with pytest.raises(Conflict) as late:
        stage.decide(approval, result="deny")
    conflict = too_late(late.value)  # type: ignore[arg-type]  # as the API does
    assert conflict.winner
    assert (conflict.winner["status"], conflict.winner["decided_by"]) == ("allowed", "system:sweep.expire_approvals")
    assert stage.get(ToolCall, tool_call.id).status == "queued"
    with pytest.raises(Conflict, match="already allowed"):
        stage.decide(approval, result="allow")


def test_if_one_passed_deadline_ends_the_run_another_allows_nothing(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"}, self_hosted=True)
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    with transaction(stage.workspace_id) as db:
        db.get_one(Approval, stage.approvals(session)[1].id).on_timeout = "end_run"
    clock.advance(61)
    stage.expire(session)
    assert [stage.get(ToolCall, c.id).status for c in (first, second)] == ["expired", "expired"]
    assert {e.body["result"] for e in stage.events(session, "user.tool_confirmation")} == {"deny"}


def test_the_model_is_told_of_an_edit_only_if_the_call_ran(stage: Stage) -> None:
    session = stage.session()
    tool_call = ask(stage, session)
    decide(stage, session, result="allow", updated_input={"command": "ls"})
    stage.send(session, {"type": "user.interrupt"})
    assert stage.get(ToolCall, tool_call.id).status == "cancelled"
    assert "this is the result" not in str(stage.history(session))


def test_the_audit_has_the_hash_of_what_was_decided(stage: Stage) -> None:
    session = stage.session()
    tool_call = ask(stage, session)
    decide(stage, session, result="allow", updated_input={"command": "ls"})
    held = stage.begin_call(tool_call)
    with transaction(stage.workspace_id) as db:
        acts = {row.action: row.details for row in db.find(Audit, "WHERE chain = %(chain)s", chain=session)}
    assert acts["approval.decided"]["decided_sha256"] == acts["tool_call.started"]["input_sha256"] == held.input_sha256


def test_used_up_grants_do_not_count_towards_the_limit(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.session.approval.grant.MAX_OF_SESSION", 1)
    session = stage.session(bash=rules(("ask", "bash(b)")))
    ask(stage, session, command="ls")
    decide(stage, session, result="allow", scope="session", max_uses=1)
    stage.run_call(stage.get(ToolCall, stage.approvals(session)[0].tool_call_id))
    stage.run_call(stage.reply(session, call(command="ls"))[0])
    stage.reply(session, call(command="b"))
    decide(stage, session, result="allow", scope="session")
