"""A passed deadline escalates an approval to the next level, and each level has a deadline of its own."""

from datetime import timedelta
from typing import Any

import pytest
from people import Somebody, group, member
from rows.stage import Stage, call
from rows.voting import ask, escalating, vote, votes

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.errors import Conflict, Forbidden
from models.flow.decide.deadlines import too_late
from models.operate import due
from models.session.approval import sentences
from models.session.approval.deadline import DeadlinePassed
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall


@pytest.fixture
def clerk(stage: Stage) -> Somebody:
    return member(stage)


@pytest.fixture
def boss(stage: Stage) -> Somebody:
    return member(stage)


def test_each_level_has_a_deadline_an_event_and_an_act(stage: Stage, clerk: Somebody, boss: Somebody, clock: Any) -> None:
    chair = member(stage)
    session = stage.session(approval=escalating(clerk, (boss, 900), (chair, 600)))
    approval = ask(stage, session)
    with pytest.raises(Forbidden):
        vote(stage, boss, approval)
    clock.advance(61)
    assert [one.session_id for one in due.overdue_approvals()] == [session]
    stage.expire(session)
    escalated = stage.get(Approval, approval.id)
    assert (escalated.status, escalated.level) == ("pending", 1)
    assert due.overdue_approvals() == []
    with pytest.raises(Forbidden):
        vote(stage, chair, approval)
    clock.advance(901)
    stage.expire(session)
    assert [event.body["level"] for event in stage.events(session, "approval.escalated")] == [1, 2]
    assert stage.events(session, "approval.escalated")[-1].body["approvers"] == [
        [f"user:{one.person_id}" for one in (clerk, boss, chair)]
    ]
    with transaction(stage.workspace_id) as db:
        acts = db.find(Audit, "WHERE chain = %(chain)s AND action = 'approval.escalated'", chain=session)
    assert len(acts) == 2
    clock.advance(601)
    stage.expire(session)
    assert stage.get(Approval, approval.id).status == "expired"
    assert stage.get(ToolCall, approval.tool_call_id).status == "expired"
    stage.check(session)


def test_after_an_escalation_the_people_of_both_levels_may_decide(
    stage: Stage, clerk: Somebody, boss: Somebody, clock: Any
) -> None:
    session = stage.session(approval=escalating(clerk, (boss, 900)) | {"required_approvals": 2})
    approval = ask(stage, session)
    vote(stage, clerk, approval)
    clock.advance(61)
    stage.expire(session)
    assert votes(stage, approval) == [(clerk.person_id, "allow")], "earlier votes stay valid"
    vote(stage, boss, approval)
    assert stage.get(Approval, approval.id).status == "allowed"
    assert stage.claim_call(stage.get(ToolCall, approval.tool_call_id)), "the level counts when the call begins"


def test_each_level_says_what_its_own_deadline_does(stage: Stage, clerk: Somebody, boss: Somebody, clock: Any) -> None:
    session = stage.session(approval=escalating(clerk, (boss, 900), then="end_run"))
    approval = ask(stage, session)
    assert sentences.afterwards(approval) == "If nobody decides, others are asked."
    clock.advance(61)
    stage.expire(session)
    assert sentences.afterwards(stage.get(Approval, approval.id)) == "If nobody decides, the run ends."


def test_after_the_last_level_the_run_can_end(stage: Stage, clerk: Somebody, boss: Somebody, clock: Any) -> None:
    session = stage.session(approval=escalating(clerk, (boss, 900), then="end_run"))
    ask(stage, session)
    clock.advance(61)
    stage.expire(session)
    assert stage.read(session).status == "waiting"
    clock.advance(901)
    stage.expire(session)
    assert stage.read(session).status == "idle"
    stage.check(session)


def test_a_late_vote_escalates_and_can_be_repeated(stage: Stage, clerk: Somebody, boss: Somebody, clock: Any) -> None:
    session = stage.session(approval=escalating(clerk, (boss, 900)))
    approval = ask(stage, session)
    clock.advance(61)
    with pytest.raises(DeadlinePassed) as late:
        vote(stage, clerk, approval)
    assert isinstance(too_late(late.value), Conflict)
    assert stage.get(Approval, approval.id).level == 1
    vote(stage, clerk, approval)
    assert stage.get(Approval, approval.id).status == "allowed"


def test_an_escalation_does_not_bypass_the_agent_s_approvers(stage: Stage, clerk: Somebody, boss: Somebody, clock: Any) -> None:
    legal = group(stage, "legal")
    session = stage.session(approval=escalating(clerk, (boss, 900)), agent_approval={"approvers": [f"group:{legal}"]})
    approval = ask(stage, session)
    clock.advance(61)
    stage.expire(session)
    with pytest.raises(Forbidden):
        vote(stage, boss, approval)


def test_the_turn_waits_for_the_escalated_call(stage: Stage, clerk: Somebody, boss: Somebody, clock: Any) -> None:
    session = stage.session(approval=escalating(clerk, (boss, 900)), bash="always_ask", read="always_allow")
    stage.message(session)
    _, allowed = stage.reply(session, call(), call("read", file_path="x"))
    clock.advance(61)
    stage.expire(session)
    stage.run_call(allowed)
    assert stage.read(session).status == "waiting"


def test_a_call_that_is_asked_again_has_its_first_level_s_time(stage: Stage, clerk: Somebody, boss: Somebody, clock: Any) -> None:
    settings = escalating(clerk, (boss, 900)) | {"remind_after_seconds": 30}
    session = stage.session(approval=settings, max_turns=9)
    approval = ask(stage, session)
    clock.advance(61)
    stage.expire(session)
    vote(stage, boss, approval)
    stage.change_policies(approval={"required_approvals": 2})
    assert stage.claim_call(stage.get(ToolCall, approval.tool_call_id)) is None
    again = stage.approvals(session)[-1]
    assert (again.level, again.expires_at - again.created_at) == (0, timedelta(seconds=60))
    assert again.remind_at
    assert again.remind_at - again.created_at == timedelta(seconds=30)


def test_the_next_level_is_reminded_as_soon_as_the_first(stage: Stage, clerk: Somebody, boss: Somebody, clock: Any) -> None:
    last = {"escalate_to": [{"approvers": [f"user:{boss.person_id}"], "timeout_seconds": 600}], "then": "deny"}
    of_clerk = {"approvers": [f"user:{clerk.person_id}"], "timeout_seconds": 600, "on_timeout": "escalate"}
    approval = ask(stage, stage.session(approval={**of_clerk, **last, "remind_after_seconds": 20}))
    clock.advance(601)
    stage.expire(approval.session_id)
    row = stage.get(Approval, approval.id)
    assert row.level == 1
    assert row.remind_at == row.deadline_from + timedelta(seconds=20)
