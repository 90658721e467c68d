"""Every call is judged again when a worker claims it, whether a policy, a grant, a deadline or a person allowed it."""

from collections.abc import Callable
from typing import Any

import pytest
from rows.stage import Stage, call, entry, rules, say

from models.database.transactions import transaction
from models.flow.judge.grants import release_waiting
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace import toolset

ASKS = {"type": "always_ask"}


def queued(stage: Stage, session: str, block: dict[str, Any] | None = None) -> ToolCall:
    """A call that is allowed at once, and waits for a worker."""
    tool_call = stage.propose(session, block or call(command="make deploy"))
    assert tool_call.status == "queued"
    return tool_call


def is_asked(stage: Stage, tool_call: ToolCall) -> Approval:
    """Assert that no worker can claim the call, and that a person is asked. Returns the approval."""
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "asked"
    approval = stage.approvals(tool_call.session_id)[-1]
    assert (approval.tool_call_id, approval.kind, approval.status) == (tool_call.id, "tool_call", "pending")
    stage.check(tool_call.session_id)
    return approval


def agent_asks(agent: dict[str, Any]) -> None:
    agent["permission_policy"] = rules(("ask", "bash"))


def tool_asks(agent: dict[str, Any]) -> None:
    agent["tools"][0]["configs"][0]["permission_policy"] = ASKS


@pytest.mark.parametrize("match", ["bash", "bash(make *)", "*"])
def test_a_call_that_a_policy_allowed_is_asked_if_the_workspace_asks_by_now(stage: Stage, match: str) -> None:
    session = stage.session(bash="always_allow")
    tool_call = queued(stage, session)
    stage.change_policies(policy=rules(("ask", match), default="allow"))
    approval = is_asked(stage, tool_call)
    assert match in approval.rule, "the approval names the rule that asks"
    assert approval.prompt == "Run shell command: make deploy"
    assert approval.input_schema, "an edited input must fit it"
    assert stage.claim_call(tool_call) is None
    stage.decide(approval, result="allow")
    stage.run_call(tool_call)
    stage.reply(session, say("Done."))
    stage.check(session)


@pytest.mark.parametrize("change", [agent_asks, tool_asks])
def test_so_is_a_call_that_its_agent_or_tool_asks_about_by_now(stage: Stage, change: Callable[[dict[str, Any]], None]) -> None:
    session = stage.session(bash="always_allow")
    tool_call = queued(stage, session)
    stage.change_agent(session, change)
    is_asked(stage, tool_call)


def test_so_is_a_call_that_the_default_of_the_workspace_had_allowed(stage: Stage) -> None:
    stage.change_policies(policy={"type": "always_allow"})
    session = stage.session(bash=None)
    stage.change_agent(session, lambda agent: agent["tools"][0]["configs"][0].update(policy_from="default"))
    tool_call = queued(stage, session)
    stage.change_policies(policy=ASKS)
    is_asked(stage, tool_call)


def test_so_is_a_call_that_a_cached_result_would_have_answered(stage: Stage) -> None:
    cache = {"seconds": 60.0, "scope": "session"}
    toolset.announce({"shop": [entry("look", idempotent=True, cache=cache)]})
    session = stage.session(servers={"shop": "assent:shop"}, shop="always_allow")
    stage.run_call(queued(stage, session, call("mcp__shop__look", n=1)))
    [tool_call] = stage.reply(session, call("mcp__shop__look", n=1))
    stage.change_policies(policy=rules(("ask", "mcp__shop__look")))
    is_asked(stage, tool_call)
    assert stage.get(ToolCall, tool_call.id).cached_from is None


def test_so_is_a_lost_call_that_would_have_run_again(stage: Stage, clock: Any) -> None:
    session = stage.session(write="always_allow")
    tool_call = queued(stage, session, call("write", file_path="a", content="b"))
    stage.lose(stage.begin_call(tool_call), clock)
    stage.change_policies(policy=rules(("ask", "write")))
    approval = is_asked(stage, tool_call)
    stage.decide(approval, result="deny")
    assert "may or may not" in stage.result(tool_call), "its first attempt may have taken effect"


def test_so_is_a_call_that_a_deadline_allowed(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    tool_call = stage.propose(session, call(command="make deploy"))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, tool_call.id).status == "queued"
    stage.change_policies(policy=rules(("ask", "bash")))
    is_asked(stage, tool_call)
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, tool_call.id).status == "expired", "and no deadline allows it again"


def test_on_timeout_does_not_allow_a_call_whose_grant_was_revoked(stage: Stage) -> None:
    session = stage.session(bash="always_ask", approval={"timeout_seconds": 60, "on_timeout": "allow"})
    stage.message(session)
    first, second = stage.reply(session, call(command="make test"), call(command="make deploy"))
    stage.decide(stage.approvals(session)[0], result="allow", scope="session")
    assert release_waiting(stage.workspace_id, session) == 1
    stage.run_call(first)
    stage.revoke_grants()
    is_asked(stage, second)


@pytest.mark.parametrize("edited", [None, {"command": "ls"}])
def test_a_person_s_decision_needs_no_second_one_if_the_policy_asks_by_now(stage: Stage, edited: dict[str, Any] | None) -> None:
    session = stage.session(bash="always_ask")
    tool_call = stage.propose(session, call(command="make deploy"))
    stage.decide(stage.approvals(session)[0], result="allow", updated_input=edited)
    stage.change_policies(policy=rules(("ask", "bash")))
    stage.run_call(tool_call)
    assert len(stage.approvals(session)) == 1


def test_a_person_s_rerun_needs_no_second_one_if_the_policy_asks_by_now(stage: Stage, clock: Any) -> None:
    session = stage.session(bash="always_allow")
    tool_call = queued(stage, session)
    stage.lose(stage.begin_call(tool_call), clock)
    stage.decide(stage.approvals(session)[0], outcome="rerun")
    stage.change_policies(policy=rules(("ask", "bash")))
    stage.run_call(tool_call)


def test_a_call_that_a_grant_covers_runs_though_the_policy_no_longer_allows_it(stage: Stage) -> None:
    """The grant answers for the default that asks by now, and the use is counted."""
    first = stage.session(bash="always_ask")
    asked = stage.propose(first, call(command="make test"))
    stage.decide(stage.approvals(first)[0], result="allow", scope="session")
    stage.run_call(asked)
    stage.change_agent(first, lambda agent: agent["tools"][0]["configs"][0].update(permission_policy={"type": "always_allow"}))
    [tool_call] = stage.reply(first, call(command="make deploy"))
    assert tool_call.grants is None, "the policy allows it, and no grant is spent"
    stage.change_agent(first, tool_asks)
    stage.run_call(tool_call)
    with transaction(stage.workspace_id) as db:
        grant = db.find(Grant, "")[0]
    assert grant.uses == 1
    assert stage.get(ToolCall, tool_call.id).grants == [grant.id]
