"""A person can delegate decisions to another person for a time. The vote names both."""

from datetime import timedelta
from typing import Any

import pytest
from people import Somebody, group, member
from rows.stage import Stage, call
from rows.voting import ask, vote, votes

from models.database import clock as database_clock
from models.database.transactions import transaction
from models.errors import Conflict, Forbidden, Invalid
from models.flow.judge.grants import release_waiting
from models.people.delegation import Delegation, Terms
from models.people.member import Member
from models.session.approval.row import Approval
from models.session.approval.vote import Vote


@pytest.fixture
def finance(stage: Stage) -> str:
    return group(stage, "finance")


@pytest.fixture
def anna(stage: Stage, finance: str) -> Somebody:
    return member(stage, groups=[finance])


@pytest.fixture
def dora(stage: Stage) -> Somebody:
    return member(stage)


def delegate(stage: Stage, giver: Somebody, to: Somebody, hours: float = 24, group_id: str | None = None, after: float = 0) -> str:
    """Delegate the giver's decisions. Returns the delegation's id."""
    with transaction(stage.workspace_id) as db:
        now = database_clock.now(db)
        terms = Terms(
            from_person_id=giver.person_id,
            to_person_id=to.person_id,
            group_id=group_id,
            starts_at=now + timedelta(hours=after),
            ends_at=now + timedelta(hours=after + hours),
        )
        row = Delegation.give(db, giver.principal, terms)
        return row.id


def of_finance(stage: Stage, finance: str, **more: Any) -> Approval:
    return ask(stage, stage.session(approval={"approvers": [f"group:{finance}"], **more}))


def test_a_delegate_s_vote_names_the_person_voted_for(stage: Stage, finance: str, anna: Somebody, dora: Somebody) -> None:
    approval = of_finance(stage, finance)
    with pytest.raises(Forbidden):
        vote(stage, dora, approval)
    delegation_id = delegate(stage, anna, dora)
    vote(stage, dora, approval)
    assert stage.get(Approval, approval.id).status == "allowed"
    with transaction(stage.workspace_id) as db:
        [cast] = Vote.of(db, [approval.id])[approval.id]
    assert (cast.person_id, cast.for_person_id, cast.delegation_id) == (dora.person_id, anna.person_id, delegation_id)
    assert cast.summary["on_behalf_of"] == f"user:{anna.person_id}"


def test_one_right_is_one_vote(stage: Stage, finance: str, anna: Somebody, dora: Somebody) -> None:
    approval = of_finance(stage, finance, required_approvals=2)
    delegate(stage, anna, dora)
    vote(stage, dora, approval)
    with pytest.raises(Conflict, match="cast on your behalf"):
        vote(stage, anna, approval)
    assert votes(stage, approval) == [(dora.person_id, "allow")]
    vote(stage, anna, approval, "deny")
    assert stage.get(Approval, approval.id).status == "denied", "the giver of the right may still deny"


def test_one_person_with_two_rights_has_one_vote(stage: Stage, finance: str, anna: Somebody, dora: Somebody) -> None:
    ben = member(stage, groups=[finance])
    delegate(stage, anna, dora)
    delegate(stage, ben, dora)
    approval = of_finance(stage, finance, required_approvals=2)
    vote(stage, dora, approval)
    vote(stage, dora, approval)
    assert stage.get(Approval, approval.id).status == "pending"


def test_a_delegation_has_a_start_and_an_end(stage: Stage, finance: str, anna: Somebody, dora: Somebody, clock: Any) -> None:
    approval = of_finance(stage, finance)
    delegate(stage, anna, dora, hours=2, after=1)
    with pytest.raises(Forbidden):
        vote(stage, dora, approval)
    clock.advance(3601)
    vote(stage, dora, approval, updated_input={"command": "pwd"})
    assert stage.get(Approval, approval.id).status == "allowed"
    later = of_finance(stage, finance)
    clock.advance(7200)
    with pytest.raises(Forbidden):
        vote(stage, dora, later)


def test_a_delegation_can_be_limited_to_one_group_s_decisions(stage: Stage, finance: str, anna: Somebody, dora: Somebody) -> None:
    legal = group(stage, "legal")
    delegate(stage, anna, dora, group_id=finance)
    vote(stage, dora, of_finance(stage, finance))
    with pytest.raises(Forbidden):
        vote(stage, dora, ask(stage, stage.session(approval={"approvers": [f"user:{anna.person_id}", f"group:{legal}"]})))
    with pytest.raises(Invalid, match="is not a member"):
        delegate(stage, dora, anna, group_id=finance)


def test_a_right_of_one_group_counts_for_no_other_that_is_named_after_the_vote(stage: Stage, finance: str, dora: Somebody) -> None:
    legal = group(stage, "legal")
    of_both = [member(stage, groups=[finance, legal]) for _ in range(3)]
    delegate(stage, of_both[0], dora, group_id=finance)
    approval = of_finance(stage, finance, required_approvals=2)
    vote(stage, dora, approval)
    stage.change_policies(approval={"approvers": [f"group:{legal}"]})
    vote(stage, of_both[1], approval)
    assert stage.get(Approval, approval.id).status == "pending"
    vote(stage, of_both[2], approval)
    assert stage.get(Approval, approval.id).status == "allowed"


def test_a_grant_by_the_right_of_one_group_counts_for_no_other(stage: Stage, finance: str, dora: Somebody) -> None:
    legal = group(stage, "legal")
    giver = member(stage, groups=[finance, legal])
    delegate(stage, giver, dora, group_id=finance)
    session = stage.session(approval={"approvers": [f"group:{finance}"]})
    stage.message(session)
    stage.reply(session, call(command="ls"), call(command="ls"))
    vote(stage, dora, stage.approvals(session)[0], scope="session")
    stage.change_policies(approval={"approvers": [f"group:{legal}"]})
    assert release_waiting(stage.workspace_id, session) == 0
    stage.change_policies(approval={"approvers": [f"group:{finance}"]})
    assert release_waiting(stage.workspace_id, session) == 1


def test_a_delegated_right_cannot_be_delegated_again(stage: Stage, finance: str, anna: Somebody, dora: Somebody) -> None:
    emil = member(stage)
    delegate(stage, anna, dora)
    delegate(stage, dora, emil)
    with pytest.raises(Forbidden):
        vote(stage, emil, of_finance(stage, finance))


def test_with_four_eyes_a_person_who_started_the_run_has_no_right_to_delegate(
    stage: Stage, anna: Somebody, dora: Somebody, finance: str
) -> None:
    demands = {"approvers": [f"user:{anna.person_id}"], "four_eyes": True}
    session = stage.session(approval=demands, on_behalf_of=f"user:{anna.person_id}")
    delegate(stage, anna, dora)
    with pytest.raises(Forbidden):
        vote(stage, dora, ask(stage, session))


def test_deactivating_the_giver_ends_a_delegation_and_so_can_the_giver(
    stage: Stage, finance: str, anna: Somebody, dora: Somebody
) -> None:
    approval = of_finance(stage, finance)
    delegation_id = delegate(stage, anna, dora)
    with transaction(stage.workspace_id) as db:
        Member.deactivate(db, anna.person_id, by=stage.principal)
    assert stage.get(Delegation, delegation_id).ended_at is not None
    with pytest.raises(Forbidden):
        vote(stage, dora, approval)
    with transaction(stage.workspace_id) as db:
        Member.give_role(db, anna.person_id, "approver", by=stage.principal)
    with pytest.raises(Forbidden):
        vote(stage, dora, approval)
    other_id = delegate(stage, anna, dora)
    with transaction(stage.workspace_id) as db:
        Delegation.find(db, other_id, lock=True).end(db, anna.principal)
    with pytest.raises(Forbidden):
        vote(stage, dora, approval)
