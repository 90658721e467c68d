"""Rules and grants are weighed again when a person allows and when a call begins: what changed in between counts (rule 6)."""

from typing import Any

import pytest
from rows.stage import Stage, call, rules, say

from models import flow
from models.audit.acts import Audit
from models.database.transactions import transaction
from models.errors import Conflict
from models.session.approval import Approval
from models.session.call_input import CallInput
from models.session.grant import Grant
from models.session.tool_call import ToolCall
from models.workspace.workspace import Workspace


def forbid(stage: Stage, match: str = "bash(rm *)") -> None:
    """The workspace forbids it from now on."""
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id).policy = rules(("deny", match))


def ask(stage: Stage, session: str, **arguments: Any) -> ToolCall:
    """A call of the next turn."""
    stage.message(session)
    return stage.reply(session, call(**(arguments or {"command": "rm x"})))[0]


def decided(stage: Stage, session: str, **said: Any) -> str:
    return stage.decide(stage.approvals(session)[-1], **said)


@pytest.mark.parametrize("policy", ["always_ask", "always_allow"])
def test_a_call_that_a_new_rule_denies_does_not_begin(stage: Stage, policy: str) -> None:
    session = stage.session(bash=policy)
    found = ask(stage, session)
    if policy == "always_ask":
        decided(stage, session, result="allow")
    forbid(stage)
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "refused"
    assert "not permitted" in stage.result(found)
    stage.reply(session, say("I see."))
    stage.check(session)


def test_a_lost_call_that_a_new_rule_denies_is_not_said_to_have_never_run(stage: Stage, clock: Any) -> None:
    """It is not run again; whether its first attempt took effect, nobody knows."""
    session = stage.session(write="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call("write", file_path="a", content="b"))
    held = stage.claim_call(found)
    assert held
    clock.advance(60)
    stage.rescue(held)
    forbid(stage, "write")
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "cancelled"
    assert "may or may not" in stage.result(found)


def test_a_lost_call_whose_grant_is_gone_and_that_a_person_denies_is_not_said_to_have_never_run(stage: Stage, clock: Any) -> None:
    session = stage.session(write="always_ask")
    write = call("write", file_path="a", content="b")
    stage.message(session)
    [first] = stage.reply(session, write)
    decided(stage, session, result="allow", scope="session")
    stage.run_call(first)
    [found] = stage.reply(session, write | {"id": "toolu_2"})
    held = stage.claim_call(found)
    assert held
    clock.advance(60)
    stage.rescue(held)
    with transaction(stage.workspace_id) as db:
        db.find(Grant)[0].revoke(db, stage.principal)
    assert stage.claim_call(found) is None
    decided(stage, session, result="deny")
    assert stage.get(ToolCall, found.id).status == "cancelled"
    assert "may or may not" in stage.result(found)


def test_nobody_can_allow_what_a_new_rule_denies_but_can_still_deny_it(stage: Stage) -> None:
    session = stage.session()
    found = ask(stage, session)
    forbid(stage)
    with pytest.raises(Conflict, match="not permitted any more"):
        decided(stage, session, result="allow")
    assert stage.get(ToolCall, found.id).status == "asked"
    decided(stage, session, result="deny")


def test_what_a_grant_allowed_and_a_new_rule_asks_about_is_put_to_a_person(stage: Stage) -> None:
    session = stage.session()
    ask(stage, session, command="ls")
    decided(stage, session, result="allow", scope="session")
    stage.run_call(stage.get(ToolCall, stage.approvals(session)[0].tool_call_id))
    [found] = stage.reply(session, call(command="git push"))
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id).policy = rules(("ask", "bash(git push *)"))
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "asked"
    assert stage.approvals(session)[-1].kind == "tool_call"


def test_an_edit_that_only_json_can_tell_from_the_proposal_is_an_edit(stage: Stage) -> None:
    """To Python, True is 1."""
    session = stage.session(custom=("refund?",))
    stage.message(session)
    [found] = stage.reply(session, call("refund", n=1, dry_run=True))
    decided(stage, session, result="allow", updated_input={"n": 1, "dry_run": 1})
    assert stage.get(CallInput, found.id).input["dry_run"] is not True
    assert stage.events(session, "agent.custom_tool_use")[0].body["input"] == {"n": 1, "dry_run": 1}


def test_a_grant_is_about_the_tool_that_was_looked_at_not_about_its_name(stage: Stage) -> None:
    """A client's own `bash` that tells the weather is not the shell; nor is the shell on the client's machine the one on ours."""
    weather = stage.session(custom=("lookup?",))
    stage.message(weather)
    [found] = stage.reply(weather, call("lookup", n=1))
    stage.decide(stage.approvals(weather)[0], result="allow", scope="always")
    with transaction(stage.workspace_id) as db:
        given = db.find(Grant)[0]
        given.tool, given.match = "bash", "bash"
    session = stage.session(of_agent=given.agent_id)
    stage.message(session)
    assert [c.status for c in stage.reply(session, call(command="rm -rf /srv"))] == ["asked"]
    assert flow.release_waiting(stage.workspace_id, session) == 0
    assert found.kind == "custom"


def test_a_person_s_rerun_needs_no_grant_any_more(stage: Stage, clock: Any) -> None:
    session = stage.session()
    ask(stage, session, command="ls")
    decided(stage, session, result="allow", scope="session")
    stage.run_call(stage.get(ToolCall, stage.approvals(session)[0].tool_call_id))
    [found] = stage.reply(session, call(command="make deploy"))
    held = stage.claim_call(found)
    assert held
    clock.advance(60)
    stage.rescue(held)
    with transaction(stage.workspace_id) as db:
        for given in db.find(Grant):
            given.revoke(db, stage.principal)
    decided(stage, session, outcome="rerun")
    assert stage.claim_call(found)


def test_who_is_late_is_told_what_the_deadline_did(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    found = ask(stage, session, command="ls")
    approval = stage.approvals(session)[0]
    clock.advance(61)
    with pytest.raises(Conflict) as late:
        stage.decide(approval, result="deny")
    told = flow.too_late(late.value)  # type: ignore[arg-type]  # the one that the door passes on
    assert told.winner
    assert (told.winner["status"], told.winner["decided_by"]) == ("allowed", "system:sweep.expire_approvals")
    assert stage.get(ToolCall, found.id).status == "queued"
    with pytest.raises(Conflict, match="already allowed"):
        stage.decide(approval, result="allow")


def test_an_end_and_an_allow_at_the_same_deadline_is_an_end(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"}, self_hosted=True)
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    with transaction(stage.workspace_id) as db:
        db.get_one(Approval, stage.approvals(session)[1].id).on_timeout = "end_run"
    clock.advance(61)
    stage.expire(session)
    assert [stage.get(ToolCall, c.id).status for c in (first, second)] == ["expired", "expired"]
    assert {e.body["result"] for e in stage.events(session, "user.tool_confirmation")} == {"deny"}


def test_the_model_hears_of_an_edit_only_where_something_ran(stage: Stage) -> None:
    session = stage.session()
    found = ask(stage, session)
    decided(stage, session, result="allow", updated_input={"command": "ls"})
    stage.send(session, {"type": "user.interrupt"})
    assert stage.get(ToolCall, found.id).status == "cancelled"
    assert "this is the result" not in str(stage.history(session))


def test_the_audit_has_the_hash_of_what_was_decided(stage: Stage) -> None:
    session = stage.session()
    found = ask(stage, session)
    decided(stage, session, result="allow", updated_input={"command": "ls"})
    held = stage.claim_call(found)
    assert held
    with transaction(stage.workspace_id) as db:
        acts = {row.action: row.details for row in db.find(Audit, "WHERE chain = %(chain)s", chain=session)}
    assert acts["approval.decided"]["decided_sha256"] == acts["tool_call.started"]["input_sha256"] == held.input_sha256


def test_grants_that_are_over_do_not_count_towards_the_limit(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.session.grant.MAX_OF_SESSION", 1)
    session = stage.session(bash=rules(("ask", "bash(b)")))
    ask(stage, session, command="ls")
    decided(stage, session, result="allow", scope="session", max_uses=1)
    stage.run_call(stage.get(ToolCall, stage.approvals(session)[0].tool_call_id))
    stage.run_call(stage.reply(session, call(command="ls"))[0])
    stage.reply(session, call(command="b"))
    decided(stage, session, result="allow", scope="session")
