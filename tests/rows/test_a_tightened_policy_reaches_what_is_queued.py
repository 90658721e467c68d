"""Every call is judged again when a worker claims it, whatever allowed it: a policy, a grant, a deadline or a person (rule 6)."""

from collections.abc import Callable
from typing import Any

import pytest
from rows.stage import Stage, call, entry, rules, say

from models import flow
from models.database.transactions import transaction
from models.session.approval import Approval
from models.session.grant import Grant
from models.session.tool_call import ToolCall
from models.workspace import toolset
from models.workspace.workspace import Workspace

ASKS = {"type": "always_ask"}


def tighten(stage: Stage, policy: dict[str, Any]) -> None:
    """From now on the workspace has this policy."""
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"policy": policy})


def queued(stage: Stage, session: str, block: dict[str, Any] | None = None) -> ToolCall:
    """A call of the next turn that is allowed at once, and waits for a worker."""
    stage.message(session)
    [found] = stage.reply(session, block or call(command="make deploy"))
    assert found.status == "queued"
    return found


def is_asked(stage: Stage, found: ToolCall) -> Approval:
    """The worker does not get the call; a person is asked. Returns the approval."""
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "asked"
    approval = stage.approvals(found.session_id)[-1]
    assert (approval.tool_call_id, approval.kind, approval.status) == (found.id, "tool_call", "pending")
    stage.check(found.session_id)
    return approval


def agent_asks(agent: dict[str, Any]) -> None:
    agent["permission_policy"] = rules(("ask", "bash"))


def tool_asks(agent: dict[str, Any]) -> None:
    agent["tools"][0]["configs"][0]["permission_policy"] = ASKS


@pytest.mark.parametrize("match", ["bash", "bash(make *)", "*"])
def test_what_a_policy_allowed_and_the_workspace_now_asks_about_is_put_to_a_person(stage: Stage, match: str) -> None:
    session = stage.session(bash="always_allow")
    found = queued(stage, session)
    tighten(stage, rules(("ask", match), default="allow"))
    approval = is_asked(stage, found)
    assert match in approval.rule, "the approval names the rule that asks"
    assert approval.prompt == "Run shell command: make deploy"
    assert approval.input_schema, "an edited input is held against it"
    assert stage.claim_call(found) is None
    stage.decide(approval, result="allow")
    stage.run_call(found)
    stage.reply(session, say("Done."))
    stage.check(session)


@pytest.mark.parametrize("change", [agent_asks, tool_asks])
def test_so_is_what_the_session_s_own_agent_or_tool_now_asks_about(stage: Stage, change: Callable[[dict[str, Any]], None]) -> None:
    session = stage.session(bash="always_allow")
    found = queued(stage, session)
    stage.change_agent(session, change)
    is_asked(stage, found)


def test_so_is_a_call_that_the_default_of_the_workspace_had_allowed(stage: Stage) -> None:
    tighten(stage, {"type": "always_allow"})
    session = stage.session(bash=None)
    stage.change_agent(session, lambda agent: agent["tools"][0]["configs"][0].update(policy_from="default"))
    found = queued(stage, session)
    tighten(stage, ASKS)
    is_asked(stage, found)


def test_so_is_a_call_that_would_have_been_answered_by_a_kept_result(stage: Stage) -> None:
    cache = {"seconds": 60.0, "scope": "session"}
    toolset.announce({"shop": [entry("look", idempotent=True, cache=cache)]})
    session = stage.session(servers={"shop": "assent:shop"}, shop="always_allow")
    stage.run_call(queued(stage, session, call("mcp__shop__look", n=1)))
    [found] = stage.reply(session, call("mcp__shop__look", n=1))
    tighten(stage, rules(("ask", "mcp__shop__look")))
    is_asked(stage, found)
    assert stage.get(ToolCall, found.id).cached_from is None


def test_so_is_a_lost_call_that_would_have_run_again_by_itself(stage: Stage, clock: Any) -> None:
    session = stage.session(write="always_allow")
    found = queued(stage, session, call("write", file_path="a", content="b"))
    held = stage.claim_call(found)
    assert held
    clock.advance(60)
    stage.rescue(held)
    tighten(stage, rules(("ask", "write")))
    approval = is_asked(stage, found)
    stage.decide(approval, result="deny")
    assert "may or may not" in stage.result(found), "nobody says that it never ran"


def test_so_is_what_a_deadline_allowed(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    stage.message(session)
    [found] = stage.reply(session, call(command="make deploy"))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, found.id).status == "queued"
    tighten(stage, rules(("ask", "bash")))
    is_asked(stage, found)
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, found.id).status == "expired", "and no deadline allows it again"


def test_what_a_deadline_allowed_still_runs_where_nothing_has_changed(stage: Stage, clock: Any) -> None:
    session = stage.session(approval={"timeout_seconds": 60, "on_timeout": "allow"})
    stage.message(session)
    [found] = stage.reply(session, call(command="make deploy"))
    clock.advance(61)
    stage.expire(session)
    stage.run_call(found)


def test_a_deadline_s_configuration_is_no_word_for_what_a_grant_had_allowed(stage: Stage) -> None:
    session = stage.session(bash="always_ask", approval={"timeout_seconds": 60, "on_timeout": "allow"})
    stage.message(session)
    first, second = stage.reply(session, call(command="make test"), call(command="make deploy"))
    stage.decide(stage.approvals(session)[0], result="allow", scope="session")
    assert flow.release_waiting(stage.workspace_id, session) == 1
    stage.run_call(first)
    with transaction(stage.workspace_id) as db:
        db.find(Grant, "")[0].revoke(db, stage.principal)
    is_asked(stage, second)


@pytest.mark.parametrize("edited", [None, {"command": "ls"}])
def test_a_person_s_own_decision_stands_against_a_policy_that_asks(stage: Stage, edited: dict[str, Any] | None) -> None:
    session = stage.session(bash="always_ask")
    stage.message(session)
    [found] = stage.reply(session, call(command="make deploy"))
    stage.decide(stage.approvals(session)[0], result="allow", updated_input=edited)
    tighten(stage, rules(("ask", "bash")))
    stage.run_call(found)
    assert len(stage.approvals(session)) == 1


def test_a_person_s_rerun_stands_against_a_policy_that_asks(stage: Stage, clock: Any) -> None:
    session = stage.session(bash="always_allow")
    found = queued(stage, session)
    held = stage.claim_call(found)
    assert held
    clock.advance(60)
    stage.rescue(held)
    stage.decide(stage.approvals(session)[0], outcome="rerun")
    tighten(stage, rules(("ask", "bash")))
    stage.run_call(found)


def test_a_person_s_decision_does_not_stand_against_a_rule_that_denies(stage: Stage) -> None:
    session = stage.session(bash="always_ask")
    stage.message(session)
    [found] = stage.reply(session, call(command="make deploy"))
    stage.decide(stage.approvals(session)[0], result="allow")
    tighten(stage, rules(("deny", "bash(make *)")))
    assert stage.claim_call(found) is None
    assert stage.get(ToolCall, found.id).status == "refused"


def test_a_call_that_a_standing_grant_covers_runs_although_the_policy_no_longer_allows_it(stage: Stage) -> None:
    """The grant answers the question that the default now puts, as for the next call, and the use is counted."""
    first = stage.session(bash="always_ask")
    stage.message(first)
    [asked] = stage.reply(first, call(command="make test"))
    stage.decide(stage.approvals(first)[0], result="allow", scope="session")
    stage.run_call(asked)
    stage.change_agent(first, lambda agent: agent["tools"][0]["configs"][0].update(permission_policy={"type": "always_allow"}))
    [found] = stage.reply(first, call(command="make deploy"))
    assert found.grants is None, "the policy allows it, and no grant is spent"
    stage.change_agent(first, tool_asks)
    stage.run_call(found)
    with transaction(stage.workspace_id) as db:
        grant = db.find(Grant, "")[0]
    assert grant.uses == 1
    assert stage.get(ToolCall, found.id).grants == [grant.id]
