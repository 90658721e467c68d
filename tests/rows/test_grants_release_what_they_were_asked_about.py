"""A grant releases a waiting call only if it would have allowed the call, and only before the deadline."""

from typing import Any

from people import member
from rows.stage import QUESTION, REFUND, Stage, call, entry, rules
from rows.voting import ask, vote

from models.flow.decide.deadlines import remind_due
from models.flow.judge.grants import release_waiting
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace import toolset

TWO = {"required_approvals": 2}


def granted(stage: Stage, agent_id: str, block: dict[str, Any], **decision: Any) -> Grant:
    """A standing grant, given in a session of its own of the agent."""
    session = stage.session(of_agent=agent_id)
    tool_call = stage.propose(session, block)
    stage.confirm(session, tool_call.id, scope="always", **decision)
    event = stage.events(session, "grant.given")[-1]
    return stage.get(Grant, event.body["grant_id"])


def test_a_grant_does_not_answer_a_tool_s_question(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"})
    tool_call = stage.propose(session, call(REFUND, n=1))
    stage.confirm(session, tool_call.id)
    stage.finish_call(stage.begin_call(tool_call), "", question=QUESTION)
    grant = granted(stage, stage.read(session).agent_id, call(REFUND, n=2))
    assert release_waiting(stage.workspace_id, session) == 0
    assert stage.get(ToolCall, tool_call.id).status == "asked"
    assert stage.get(Grant, grant.id).uses == 0


def test_a_call_past_its_deadline_is_not_released(stage: Stage, clock: Any) -> None:
    session = stage.session()
    tool_call = stage.propose(session, call(command="a"))
    clock.advance(86_401)
    granted(stage, stage.read(session).agent_id, call(command="b"))
    assert release_waiting(stage.workspace_id, session) == 0
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, tool_call.id).status == "expired"


def test_a_call_that_a_rule_asks_about_or_allows_by_now_uses_no_grant(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    pushed, listed = stage.reply(session, call(command="git push"), call(command="ls"))
    grant = granted(stage, stage.read(session).agent_id, call(command="b"))
    policy = rules(("ask", "bash(git push *)"), ("allow", "bash(ls *)"))
    stage.change_agent(session, lambda agent: agent["tools"][0]["configs"][0].update(permission_policy=policy))
    assert release_waiting(stage.workspace_id, session) == 0
    assert [stage.get(ToolCall, tool_call.id).status for tool_call in (pushed, listed)] == ["asked", "asked"]
    assert stage.get(Grant, grant.id).uses == 0


def test_a_sweep_releases_a_bounded_number_at_once_and_the_run_goes_on(stage: Stage) -> None:
    session = stage.session()
    stage.message(session)
    stage.reply(session, *(call(command=one) for one in "abc"))
    granted(stage, stage.read(session).agent_id, call(command="b"))
    assert [release_waiting(stage.workspace_id, session, limit=2) for _ in range(3)] == [2, 1, 0]
    assert stage.read(session).status == "running"
    stage.check(session)


def test_a_call_that_has_not_begun_when_its_grant_expires_is_asked(stage: Stage, clock: Any) -> None:
    session = stage.session()
    granted(stage, stage.read(session).agent_id, call(command="a"), expires_in_seconds=60)
    tool_call = stage.propose(session, call(command="b"))
    assert tool_call.status == "queued"
    clock.advance(61)
    assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, tool_call.id).status == "asked"


def test_a_second_approval_has_the_same_timeout_reminder_and_on_timeout_as_the_first(stage: Stage, clock: Any) -> None:
    """Though a part of the first timeout had passed, and people had been reminded."""
    approval = {"timeout_seconds": 600, "on_timeout": "end_run", "remind_after_seconds": 100}
    session = stage.session(approval=approval)
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    clock.advance(101)
    assert remind_due(stage.workspace_id, session) == 2
    stage.confirm(session, first.id, scope="session")
    assert release_waiting(stage.workspace_id, session) == 1
    stage.revoke_grants()
    assert stage.claim_call(second) is None
    _, before, again = stage.approvals(session)
    assert again.remind_at
    times = [(at - again.created_at).total_seconds() for at in (again.remind_at, again.expires_at)]
    assert [round(seconds, -1) for seconds in times] == [100, 600], "both count from the new approval"
    assert (again.on_timeout, again.prompt, again.input_schema) == ("end_run", before.prompt, before.input_schema)
    assert again.input_schema
    clock.advance(601)
    stage.expire(session)
    stage.check(session)


def test_a_call_that_cannot_run_at_all_uses_no_grant(stage: Stage) -> None:
    session = stage.session()
    grant = granted(stage, stage.read(session).agent_id, call(command="a"), max_uses=1)
    stage.message(session)
    broken, good = stage.reply(session, call(nonsense=1), call(command="b"))
    assert [broken.status, good.status] == ["refused", "queued"]
    assert stage.get(Grant, grant.id).uses == 1


def test_a_milder_setting_lets_no_grant_answer_in_the_place_of_several(stage: Stage) -> None:
    member(stage), member(stage)
    stage.change_policies(approval=TWO)
    session = stage.session()
    tool_call = stage.propose(session, call(command="ls"))
    stage.change_policies(approval=None)
    granted(stage, stage.read(session).agent_id, call(command="pwd"))
    assert release_waiting(stage.workspace_id, session) == 0
    assert stage.claim_call(tool_call) is None


def test_a_grant_releases_no_call_whose_edit_waits_for_a_second_vote(stage: Stage) -> None:
    anna, ben, cara = member(stage), member(stage), member(stage)
    edited = ask(stage, stage.session(approval=TWO, on_behalf_of=f"user:{anna.person_id}"), command="echo one")
    vote(stage, anna, edited, updated_input={"command": "echo two"})
    other = ask(stage, stage.session(of_agent=edited.agent_id, on_behalf_of=f"user:{ben.person_id}"), command="echo three")
    for who in (ben, cara):
        vote(stage, who, other, scope="always")
    assert release_waiting(stage.workspace_id, edited.session_id) == 0
    assert stage.get(Approval, edited.id).status == "pending"
