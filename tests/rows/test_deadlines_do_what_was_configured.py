"""A passed deadline denies the call, ends the run or, only by the tool's own configuration, allows the call."""

from typing import Any

import pytest
from people import member
from rows.stage import REFUND, Stage, call, entry, rules, say

from models.flow.decide.deadlines import expire_due, remind_due
from models.operate import due
from models.session.tool_call.row import ToolCall
from models.workspace import toolset


def wait(stage: Stage, session: str, **arguments: Any) -> ToolCall:
    """A call that waits for a person."""
    return stage.propose(session, call(**(arguments or {"command": "ls"})))


def test_a_passed_deadline_can_end_the_run(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "end_run"})
    tool_call = wait(stage, session)
    clock.advance(61)
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, tool_call.id).status == "expired"
    stop = stage.read(session).stop_reason or {}
    assert (stop["type"], stop["ended_by"]) == ("end_turn", "system:sweep.expire_approvals")
    stage.check(session)
    stage.message(session, "Still there?")
    stage.reply(session, say("Yes."))
    stage.check(session)


def test_a_passed_deadline_can_allow_if_the_tool_s_own_configuration_says_so(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    tool_call = wait(stage, session)
    clock.advance(61)
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, tool_call.id).status == "queued"
    assert stage.approvals(session)[0].decided_by == "system:sweep.expire_approvals"
    assert stage.claim_call(tool_call)


def test_a_passed_deadline_never_allows_what_a_rule_asks_about(stage: Stage, clock: Any) -> None:
    policy = rules(("ask", "bash(git push *)"))
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"}, bash=policy)
    tool_call = wait(stage, session, command="git push")
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, tool_call.id).status == "expired"


def test_a_new_rule_of_the_workspace_holds_at_the_deadline(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    tool_call = wait(stage, session, command="rm x")
    stage.change_policies(policy=rules(("deny", "bash(rm *)")))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, tool_call.id).status == "expired"


def test_the_configuration_at_the_deadline_holds(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    tool_call = wait(stage, session)
    stage.change_agent(session, lambda agent: agent["tools"][0]["configs"][0].update(approval={"on_timeout": "deny"}))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, tool_call.id).status == "expired"


def test_a_passed_deadline_never_allows_a_call_that_no_longer_fits_its_tool(stage: Stage, clock: Any) -> None:
    """Such a call would be asked and allowed again for ever."""
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"})
    ask = {"permission_policy": {"type": "always_ask"}, "policy_from": "default"}
    config = {"name": "refund", "enabled": True, **ask, "approval": {"timeout_seconds": 60, "on_timeout": "allow"}}
    stage.change_agent(session, lambda agent: agent["tools"][-1].update(configs=[config]))
    tool_call = stage.propose(session, call(REFUND, n=1))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, tool_call.id).status == "queued"
    toolset.announce({"orders": [entry("refund", input_schema={"type": "object", "required": ["cents"]})]})
    assert stage.claim_call(tool_call) is None
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, tool_call.id).status == "expired"
    stage.check(session)


@pytest.mark.parametrize("level", ["tool", "agent", "workspace"])
def test_the_nearest_level_with_a_timeout_sets_the_deadline(stage: Stage, clock: Any, level: str) -> None:
    timeouts = {"tool": {"timeout_seconds": 10}, "agent": {"timeout_seconds": 20}, "workspace": {"timeout_seconds": 30}}
    stage.change_policies(approval=timeouts["workspace"])
    session = stage.session(
        approval=timeouts["tool"] if level == "tool" else None,
        agent_approval=timeouts["agent"] if level in {"tool", "agent"} else None,
    )
    tool_call = wait(stage, session)
    [approval] = stage.approvals(session)
    assert (approval.expires_at - approval.created_at).total_seconds() == timeouts[level]["timeout_seconds"]
    assert tool_call.status == "asked"


def test_people_are_reminded_once_by_default_after_five_minutes(stage: Stage, clock: Any) -> None:
    session = stage.session()
    wait(stage, session)
    assert due.approvals_to_remind() == []
    assert remind_due(stage.workspace_id, session) == 0
    clock.advance(301)
    assert [each.session_id for each in due.approvals_to_remind()] == [session]
    assert remind_due(stage.workspace_id, session) == 1
    assert remind_due(stage.workspace_id, session) == 0
    assert due.approvals_to_remind() == []
    [event] = stage.events(session, "approval.reminded")
    assert event.body["tool"] == "bash"
    assert stage.approvals(session)[0].reminded_at is not None


def test_a_decided_approval_is_not_reminded_of(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"remind_after_seconds": 10})
    tool_call = wait(stage, session)
    stage.confirm(session, tool_call.id)
    clock.advance(11)
    assert due.approvals_to_remind() == []
    assert remind_due(stage.workspace_id, session) == 0


def test_no_reminder_comes_after_the_deadline(stage: Stage) -> None:
    session = stage.session(approval={"timeout_seconds": 60})
    wait(stage, session)
    assert stage.approvals(session)[0].remind_at is None


def test_a_sweep_expires_a_bounded_number_at_once(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, *(call(command=one) for one in "abc"))
    clock.advance(86_401)
    assert [expire_due(stage.workspace_id, session, limit=2) for _ in range(3)] == [2, 1, 0]
    stage.check(session)


def test_a_milder_setting_lets_no_deadline_answer_in_the_place_of_several(stage: Stage, clock: Any) -> None:
    member(stage), member(stage)
    stage.change_policies(approval={"required_approvals": 2})
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    tool_call = wait(stage, session)
    stage.change_policies(approval=None)
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, tool_call.id).status == "expired"
    assert stage.claim_call(tool_call) is None


def test_a_deadline_allows_no_call_that_reaches_another_place_than_it_says(stage: Stage, clock: Any) -> None:
    """Its claim would ask again, with another deadline, for ever."""
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"}, write=rules(("ask", "write(secrets/**)")))
    tool_call = stage.propose(session, call("write", file_path="link/x", content="a"))
    for _ in range(2):
        clock.advance(61)
        stage.expire(session)
        stage.claim_call(tool_call, links={"link/x": "secrets/x"})
    assert stage.get(ToolCall, tool_call.id).status == "expired"
    assert len(stage.approvals(session)) == 2
