"""R8, R14, R15: when nobody answers: denied, the run ended or, where the tool's own configuration says so, allowed."""

from typing import Any

import pytest
from rows.stage import Stage, call, entry, rules, say

from models import flow
from models.database.transactions import transaction
from models.flow import due
from models.session.tool_call import ToolCall
from models.workspace import toolset
from models.workspace.workspace import Workspace


def wait(stage: Stage, session: str, **arguments: Any) -> ToolCall:
    """A call that waits."""
    stage.message(session)
    [found] = stage.reply(session, call(**(arguments or {"command": "ls"})))
    return found


def test_a_passed_deadline_can_end_the_run(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "end_run"})
    found = wait(stage, session)
    clock.advance(61)
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, found.id).status == "expired"
    said = stage.read(session).stop_reason or {}
    assert (said["type"], said["ended_by"]) == ("end_turn", "system:sweep.expire_approvals")
    stage.check(session)
    stage.message(session, "Still there?")
    stage.reply(session, say("Yes."))
    stage.check(session)


def test_a_passed_deadline_can_allow_if_the_tool_s_own_configuration_says_so(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    found = wait(stage, session)
    clock.advance(61)
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, found.id).status == "queued"
    assert stage.approvals(session)[0].decided_by == "system:sweep.expire_approvals"
    assert stage.claim_call(found)


def test_a_passed_deadline_never_allows_what_a_rule_asks_about(stage: Stage, clock: Any) -> None:
    """The rule wants a person; time is none."""
    policy = rules(("ask", "bash(git push *)"))
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"}, bash=policy)
    found = wait(stage, session, command="git push")
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, found.id).status == "expired"


def test_a_workspace_s_rule_that_came_meanwhile_holds_at_the_deadline(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    found = wait(stage, session, command="rm x")
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id).policy = rules(("deny", "bash(rm *)"))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, found.id).status == "expired"


def test_a_configuration_that_allows_no_more_is_the_one_that_holds_at_the_deadline(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    found = wait(stage, session)
    stage.change_agent(session, lambda agent: agent["tools"][0]["configs"][0].update(approval={"on_timeout": "deny"}))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, found.id).status == "expired"


def test_a_passed_deadline_never_allows_what_fits_its_tool_no_more(stage: Stage, clock: Any) -> None:
    """It would be asked again and allowed again, for ever."""
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"})
    said = {"timeout_seconds": 60, "on_timeout": "allow"}
    ask = {"permission_policy": {"type": "always_ask"}, "policy_from": "default"}
    config = {"name": "refund", "enabled": True, **ask, "approval": said}
    stage.change_agent(session, lambda agent: agent["tools"][-1].update(configs=[config]))
    stage.message(session)
    [found] = stage.reply(session, call("mcp__shop__refund", n=1))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, found.id).status == "queued"
    toolset.announce({"orders": [entry("refund", input_schema={"type": "object", "required": ["cents"]})]})
    assert stage.claim_call(found) is None
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, found.id).status == "expired"
    stage.check(session)


@pytest.mark.parametrize("level", ["tool", "agent", "workspace"])
def test_the_nearest_level_that_says_something_sets_the_deadline(stage: Stage, clock: Any, level: str) -> None:
    said = {"tool": {"timeout_seconds": 10}, "agent": {"timeout_seconds": 20}, "workspace": {"timeout_seconds": 30}}
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id).approval = said["workspace"]
    session = stage.session(
        approval=said["tool"] if level == "tool" else None,
        agent_approval=said["agent"] if level in {"tool", "agent"} else None,
    )
    found = wait(stage, session)
    [approval] = stage.approvals(session)
    assert (approval.expires_at - approval.created_at).total_seconds() == said[level]["timeout_seconds"]
    assert found.status == "asked"


def test_people_are_reminded_once(stage: Stage, clock: Any) -> None:
    """R15: after five minutes unless set."""
    session = stage.session()
    wait(stage, session)
    assert due.approvals_to_remind() == []
    assert flow.remind_due(stage.workspace_id, session) == 0
    clock.advance(301)
    assert [each.session_id for each in due.approvals_to_remind()] == [session]
    assert flow.remind_due(stage.workspace_id, session) == 1
    assert flow.remind_due(stage.workspace_id, session) == 0
    assert due.approvals_to_remind() == []
    [event] = stage.events(session, "approval.reminded")
    assert event.body["tool"] == "bash"
    assert stage.approvals(session)[0].reminded_at is not None


def test_what_is_decided_is_not_reminded_of(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"remind_after_seconds": 10})
    found = wait(stage, session)
    stage.confirm(session, found.id)
    clock.advance(11)
    assert due.approvals_to_remind() == []
    assert flow.remind_due(stage.workspace_id, session) == 0


def test_no_reminder_comes_after_the_deadline(stage: Stage) -> None:
    session = stage.session(approval={"timeout_seconds": 60})
    wait(stage, session)
    assert stage.approvals(session)[0].remind_at is None


def test_a_sweep_expires_so_many_at_once_and_no_more(stage: Stage, clock: Any) -> None:
    """Rule 12: its transaction is bounded; the next one goes on."""
    session = stage.session()
    stage.message(session)
    stage.reply(session, *(call(command=one) for one in "abc"))
    clock.advance(86_401)
    assert [flow.expire_due(stage.workspace_id, session, limit=2) for _ in range(3)] == [2, 1, 0]
    stage.check(session)
