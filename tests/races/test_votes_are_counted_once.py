"""However votes, edits, removals and halts coincide, a call begins only with the required number of valid votes."""

from functools import partial

import pytest
from crashes.invariants import check_invariants
from people import Somebody, group, member
from races.races_together import of_kind, together
from rows.stage import Stage
from rows.voting import ask, leave, vote, votes

from models.database.transactions import transaction
from models.errors import Conflict
from models.session.approval.row import Approval
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt

ROUNDS = 12


@pytest.fixture
def finance(stage: Stage) -> str:
    return group(stage, "finance")


@pytest.fixture
def people(stage: Stage, finance: str) -> list[Somebody]:
    return [member(stage, groups=[finance]) for _ in range(3)]


def asked(stage: Stage, finance: str, required: int = 2) -> Approval:
    return ask(stage, stage.session(approval={"approvers": [f"group:{finance}"], "required_approvals": required}))


def test_two_votes_at_once_are_one_decision(stage: Stage, finance: str, people: list[Somebody]) -> None:
    for _ in range(ROUNDS):
        approval = asked(stage, finance)
        outcomes = together(*(partial(vote, stage, one, approval) for one in people[:2]))
        assert not of_kind(outcomes, Exception)
        seen = check_invariants(stage.workspace_id, approval.session_id)
        assert len(seen.of("user.tool_confirmation")) == 1
        assert len(votes(stage, approval)) == 2
        assert seen.calls[0].status == "queued"


def test_more_votes_than_required_are_not_counted(stage: Stage, finance: str, people: list[Somebody]) -> None:
    approval = asked(stage, finance)
    outcomes = together(*(partial(vote, stage, one, approval) for one in people))
    assert len(votes(stage, approval)) == 2
    assert len([one for one in outcomes if isinstance(one, str)]) >= 2
    seen = check_invariants(stage.workspace_id, approval.session_id)
    assert len(seen.of("user.tool_confirmation")) == 1


def test_the_same_person_from_many_browsers_is_one_vote(stage: Stage, finance: str, people: list[Somebody]) -> None:
    approval = asked(stage, finance)
    outcomes = together(*[partial(vote, stage, people[0], approval)] * 10)
    assert len({*outcomes}) == 1, "each gets the id of the one vote's event"
    assert len(votes(stage, approval)) == 1
    assert stage.get(Approval, approval.id).status == "pending"


def test_an_allow_and_a_denial_at_once_are_a_denial_or_a_conflict(stage: Stage, finance: str, people: list[Somebody]) -> None:
    for _ in range(ROUNDS):
        approval = asked(stage, finance)
        vote(stage, people[0], approval)
        _, denied = together(partial(vote, stage, people[1], approval), partial(vote, stage, people[2], approval, "deny"))
        decided = stage.get(Approval, approval.id).status
        assert decided == ("allowed" if isinstance(denied, Conflict) else "denied")


def test_the_vote_of_a_person_who_is_just_removed_lets_no_call_begin(stage: Stage, finance: str, people: list[Somebody]) -> None:
    """Even if the second vote still counted the first, the claim does not."""
    anna, ben, _ = people
    for _ in range(ROUNDS):
        leaving = member(stage, groups=[finance])
        approval = asked(stage, finance)
        vote(stage, leaving, approval)
        together(partial(vote, stage, ben, approval), partial(leave, stage, leaving, finance))
        tool_call = stage.get(ToolCall, approval.tool_call_id)
        assert stage.claim_call(tool_call) is None
        assert stage.get(ToolCall, tool_call.id).status == "asked"
        again = stage.approvals(approval.session_id)[-1]
        vote(stage, anna, again)
        if again.id != approval.id:
            vote(stage, ben, again)
        assert stage.claim_call(tool_call), "two present members let it begin"


def test_a_vote_beside_an_edit_does_not_count_for_the_edited_input(stage: Stage, finance: str, people: list[Somebody]) -> None:
    anna, ben, cleo = people
    for _ in range(ROUNDS):
        approval = asked(stage, finance)
        edit = {"updated_input": {"command": "pwd"}}
        _, plain = together(partial(vote, stage, anna, approval, **edit), partial(vote, stage, ben, approval))
        now = stage.get(Approval, approval.id)
        assert now.status == "pending"
        assert votes(stage, approval) == [(anna.person_id, "allow")]
        assert isinstance(plain, str | Conflict)
        vote(stage, cleo, approval, expected_input_sha256=now.decided_sha256)
        held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
        assert held.input_sha256 == now.decided_sha256


def test_a_claim_at_the_same_moment_as_a_halt_begins_before_it_or_not_at_all(stage: Stage) -> None:
    for _ in range(ROUNDS):
        session = stage.session(bash="always_allow")
        tool_call = stage.propose(session)
        held, halt = together(partial(stage.claim_call, tool_call), partial(start, stage))
        if held is not None:
            with transaction(stage.workspace_id) as db:
                [attempt] = db.find(Attempt, "WHERE tool_call_id = %(id)s", id=tool_call.id)
            assert attempt.started_at < halt.started_at
        with transaction(stage.workspace_id) as db:
            Halt.end(db, stage.principal)


def start(stage: Stage) -> Halt:
    with transaction(stage.workspace_id) as db:
        return Halt.start(db, stage.principal, None)
