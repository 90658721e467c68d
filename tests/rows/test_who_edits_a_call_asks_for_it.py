"""With four eyes, who edits a call's input has asked for it: somebody else must allow what was edited."""

from typing import Any

import pytest
from people import Somebody, member
from rows.stage import Stage, call
from rows.voting import ask, vote, votes

from models.errors import Conflict, Forbidden, Invalid
from models.session.approval.row import Approval
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall

FOUR_EYES = {"four_eyes": True}
EVIL: dict[str, Any] = {"updated_input": {"command": "echo evil"}}


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage)


@pytest.fixture
def ben(stage: Stage) -> Somebody:
    return member(stage)


@pytest.fixture
def cara(stage: Stage) -> Somebody:
    return member(stage)


@pytest.fixture
def approval(stage: Stage, anna: Somebody, ben: Somebody, cara: Somebody) -> Approval:
    """An approval of a call that Anna asked for. Ben and Cara may decide it."""
    return ask(stage, stage.session(approval=FOUR_EYES, on_behalf_of=f"user:{anna.person_id}"))


def now(stage: Stage, approval: Approval) -> Approval:
    return stage.get(Approval, approval.id)


def test_who_edits_does_not_allow_and_somebody_else_does(stage: Stage, ben: Somebody, cara: Somebody, approval: Approval) -> None:
    vote(stage, ben, approval, **EVIL)
    edited = now(stage, approval)
    assert (edited.status, ben.person_id in edited.started_by) == ("pending", True)
    assert votes(stage, approval) == [(ben.person_id, "edit")]
    with pytest.raises(Forbidden, match="edited this call"):
        vote(stage, ben, approval, expected_input_sha256=edited.runs)
    vote(stage, cara, approval, expected_input_sha256=edited.runs)
    assert now(stage, approval).status == "allowed"
    held = stage.claim_call(stage.get(ToolCall, approval.tool_call_id))
    assert held
    assert held.input_sha256 == edited.runs


def test_an_edit_that_is_sent_again_changes_nothing(stage: Stage, ben: Somebody, approval: Approval) -> None:
    assert vote(stage, ben, approval, **EVIL) == vote(stage, ben, approval, **EVIL)
    assert votes(stage, approval) == [(ben.person_id, "edit")]


def test_who_edited_may_deny_or_edit_again_or_restore_the_input(stage: Stage, ben: Somebody, approval: Approval) -> None:
    vote(stage, ben, approval, **EVIL)
    vote(stage, ben, approval, updated_input={"command": "echo better"})
    assert votes(stage, approval) == [(ben.person_id, "edit")]
    vote(stage, ben, approval, updated_input={"command": "ls"})
    assert now(stage, approval).status == "allowed", "the input that the model proposed, for which only Anna asked"


def test_who_edited_may_deny(stage: Stage, ben: Somebody, approval: Approval) -> None:
    vote(stage, ben, approval, **EVIL)
    vote(stage, ben, approval, "deny")
    assert now(stage, approval).status == "denied"


def test_who_asked_for_the_run_edits_nothing(stage: Stage, anna: Somebody, approval: Approval) -> None:
    with pytest.raises(Forbidden, match="You started this run"):
        vote(stage, anna, approval, **EVIL)


def test_an_edit_that_nobody_is_left_to_allow_is_refused(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    approval = ask(stage, stage.session(approval=FOUR_EYES, on_behalf_of=f"user:{anna.person_id}"))
    with pytest.raises(Invalid, match=r"updated_input: with four eyes, somebody else must allow .* Nobody may allow this call"):
        vote(stage, ben, approval, **EVIL)
    assert now(stage, approval).decided_input is None


def test_an_edited_call_that_is_asked_about_again_keeps_its_editor(stage: Stage, ben: Somebody, cara: Somebody) -> None:
    """The edit was allowed before anybody required four eyes."""
    approval = ask(stage, stage.session(on_behalf_of=f"user:{member(stage).person_id}"))
    vote(stage, ben, approval, **EVIL)
    assert now(stage, approval).status == "allowed"
    stage.change_policies(approval=FOUR_EYES)
    assert stage.claim_call(stage.get(ToolCall, approval.tool_call_id)) is None
    again = stage.approvals(approval.session_id)[-1]
    assert (again.status, ben.person_id in again.started_by) == ("pending", True)
    with pytest.raises(Forbidden, match="edited this call"):
        vote(stage, ben, again)
    vote(stage, cara, again)
    assert stage.claim_call(stage.get(ToolCall, approval.tool_call_id))


def test_a_grant_of_the_editor_does_not_release_the_edited_call(stage: Stage, ben: Somebody, cara: Somebody) -> None:
    first = ask(stage, stage.session(on_behalf_of=f"user:{member(stage).person_id}"))
    vote(stage, ben, first, **EVIL)
    other = ask(stage, stage.session(of_agent=first.agent_id, on_behalf_of=f"user:{cara.person_id}"))
    vote(stage, ben, other, scope="always")
    stage.change_policies(approval=FOUR_EYES)
    assert stage.claim_call(stage.get(ToolCall, first.tool_call_id)) is None
    assert stage.approvals(first.session_id)[-1].status == "pending"


def test_the_editor_s_vote_uses_nobody_s_right(stage: Stage, anna: Somebody, ben: Somebody, cara: Somebody) -> None:
    two = stage.session(approval=FOUR_EYES | {"required_approvals": 2}, on_behalf_of=f"user:{anna.person_id}")
    dora = member(stage)
    approval = ask(stage, two)
    vote(stage, cara, approval)
    vote(stage, ben, approval, **EVIL)
    runs = now(stage, approval).runs
    with pytest.raises(Conflict, match="Another voter has edited"):
        vote(stage, cara, approval)
    vote(stage, cara, approval, expected_input_sha256=runs)
    assert now(stage, approval).status == "pending"
    vote(stage, dora, approval, expected_input_sha256=runs)
    assert now(stage, approval).status == "allowed"


def test_a_run_that_nobody_may_decide_says_so_at_once(stage: Stage, anna: Somebody) -> None:
    session = stage.session(approval=FOUR_EYES, on_behalf_of=f"user:{anna.person_id}")
    stage.propose(session, call(command="ls"))
    [event] = stage.events(session, "approval.requested")
    assert "Nobody may allow this call" in event.body["shortage"]
    assert "Deny it, or have an admin" in event.body["shortage"]
    ben = member(stage)
    [approval] = stage.approvals(session)
    vote(stage, ben, approval)
    assert now(stage, approval).status == "allowed"


def test_after_a_second_edit_the_model_s_input_is_still_known(stage: Stage, anna: Somebody, ben: Somebody, cara: Somebody) -> None:
    first = ask(stage, stage.session(on_behalf_of=f"user:{cara.person_id}"), command="echo proposed")
    vote(stage, anna, first, updated_input={"command": "echo first"})
    stage.change_policies(approval={"required_approvals": 2})
    assert stage.claim_call(stage.get(ToolCall, first.tool_call_id)) is None
    again = stage.approvals(first.session_id)[-1]
    vote(stage, anna, again, updated_input={"command": "echo second"})
    vote(stage, ben, again, expected_input_sha256=now(stage, again).runs)
    row = stage.get(CallInput, first.tool_call_id)
    assert (row.input, row.proposed_input) == ({"command": "echo second"}, {"command": "echo proposed"})
