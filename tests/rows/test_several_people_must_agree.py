"""With a quorum each person has one vote, which is bound to the input, and one denial decides."""

from typing import Any

import pytest
from people import Somebody, group, member
from rows.stage import Stage, call
from rows.voting import ask, leave, vote, votes

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.errors import Conflict, Forbidden
from models.flow.run.results import lose_call
from models.people.group import Membership
from models.session.approval.events import requirements
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall


@pytest.fixture
def finance(stage: Stage) -> str:
    return group(stage, "finance")


@pytest.fixture
def anna(stage: Stage, finance: str) -> Somebody:
    return member(stage, groups=[finance])


@pytest.fixture
def ben(stage: Stage, finance: str) -> Somebody:
    return member(stage, groups=[finance])


@pytest.fixture
def two_of_finance(finance: str) -> dict[str, Any]:
    return {"approvers": [f"group:{finance}"], "required_approvals": 2}


def test_a_call_runs_once_the_required_number_of_people_allowed_it(
    stage: Stage, anna: Somebody, ben: Somebody, two_of_finance: dict[str, Any]
) -> None:
    session = stage.session(approval=two_of_finance)
    approval = ask(stage, session)
    vote(stage, anna, approval)
    waiting = stage.get(Approval, approval.id)
    assert (waiting.status, stage.get(ToolCall, approval.tool_call_id).status) == ("pending", "asked")
    assert votes(stage, approval) == [(anna.person_id, "allow")]
    assert stage.events(session, "user.tool_confirmation") == []
    vote(stage, ben, approval)
    decided = stage.get(Approval, approval.id)
    assert (decided.status, decided.decided_by) == ("allowed", f"user:{ben.person_id}")
    assert stage.claim_call(stage.get(ToolCall, approval.tool_call_id))
    closed = stage.events(session, "approval.decided")[-1].body
    assert [one["by"] for one in closed["votes"]] == [f"user:{anna.person_id}", f"user:{ben.person_id}"]
    assert closed["required_approvals"] == 2
    with transaction(stage.workspace_id) as db:
        acts = db.find(Audit, "WHERE chain = %(chain)s AND action = 'approval.voted' ORDER BY seq", chain=session)
    assert [act.principal for act in acts] == [f"user:{anna.person_id}", f"user:{ben.person_id}"]
    stage.check(session)


def test_one_denial_decides(stage: Stage, anna: Somebody, ben: Somebody, two_of_finance: dict[str, Any]) -> None:
    approval = ask(stage, stage.session(approval=two_of_finance))
    vote(stage, anna, approval)
    vote(stage, ben, approval, "deny", deny_message="Not today.")
    assert stage.get(Approval, approval.id).status == "denied"
    assert stage.get(ToolCall, approval.tool_call_id).status == "denied"


def test_the_same_person_counts_once(stage: Stage, anna: Somebody, ben: Somebody, two_of_finance: dict[str, Any]) -> None:
    approval = ask(stage, stage.session(approval=two_of_finance))
    first = vote(stage, anna, approval)
    assert vote(stage, anna, approval) == first, "the same vote again is a no-op"
    with pytest.raises(Conflict, match="You have voted"):
        vote(stage, anna, approval, scope="session")
    assert stage.get(Approval, approval.id).status == "pending"
    assert len(votes(stage, approval)) == 1
    vote(stage, anna, approval, "deny")
    assert stage.get(Approval, approval.id).status == "denied", "a person who allowed may still deny"


def test_neither_keys_nor_other_people_nor_chat_words_decide(
    stage: Stage, anna: Somebody, finance: str, two_of_finance: dict[str, Any]
) -> None:
    stranger = member(stage, "admin")
    session = stage.session(approval=two_of_finance, chat_approvals=True)
    approval = ask(stage, session)
    with pytest.raises(Forbidden, match=rf"2 people must approve, each of group:{finance} \(finance\)"):
        stage.decide(approval, result="allow")
    with pytest.raises(Forbidden, match="not one of those"):
        vote(stage, stranger, approval)
    seen = stage.events(session)[-1].id
    stage.send(session, {"type": "user.message", "content": [{"type": "text", "text": "yes"}], "seen": seen})
    assert "words in a chat do not decide bash" in stage.events(session, "agent.message")[-1].body["content"][0]["text"]
    assert stage.get(Approval, approval.id).status == "pending"
    assert votes(stage, approval) == []


def test_a_partial_quorum_expires_at_the_deadline(
    stage: Stage, anna: Somebody, ben: Somebody, two_of_finance: dict[str, Any], clock: Any
) -> None:
    session = stage.session(approval=two_of_finance | {"timeout_seconds": 60})
    approval = ask(stage, session)
    vote(stage, anna, approval)
    clock.advance(61)
    stage.expire(session)
    assert stage.get(Approval, approval.id).status == "expired"
    assert "Nobody approved or denied" in stage.result(stage.get(ToolCall, approval.tool_call_id))


def test_an_edit_voids_the_votes_before_it(
    stage: Stage, anna: Somebody, ben: Somebody, finance: str, two_of_finance: dict[str, Any]
) -> None:
    cleo = member(stage, groups=[finance])
    session = stage.session(approval=two_of_finance)
    approval = ask(stage, session)
    vote(stage, anna, approval)
    vote(stage, ben, approval, updated_input={"command": "ls -l"})
    edited = stage.get(Approval, approval.id)
    assert (edited.status, edited.decided_shown) == ("pending", {"command": "ls -l"})
    assert votes(stage, approval) == [(ben.person_id, "allow")]
    with pytest.raises(Conflict, match="edited the input"):
        vote(stage, cleo, approval)
    with pytest.raises(Conflict, match="is not the hash"):
        vote(stage, cleo, approval, expected_input_sha256=approval.input_sha256)
    vote(stage, cleo, approval, expected_input_sha256=edited.decided_sha256)
    assert stage.get(Approval, approval.id).status == "allowed"
    held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
    assert held.input_sha256 == edited.decided_sha256


def test_votes_for_different_answers_do_not_count_together(
    stage: Stage, anna: Somebody, ben: Somebody, two_of_finance: dict[str, Any]
) -> None:
    approval = ask(stage, stage.session(approval=two_of_finance))
    vote(stage, anna, approval)
    vote(stage, ben, approval, respond=({"type": "text", "text": "It ran."},))
    assert stage.get(Approval, approval.id).status == "pending"


def test_the_vote_of_a_person_who_left_the_group_does_not_count(
    stage: Stage, anna: Somebody, ben: Somebody, finance: str, two_of_finance: dict[str, Any]
) -> None:
    cleo = member(stage, groups=[finance])
    approval = ask(stage, stage.session(approval=two_of_finance))
    vote(stage, anna, approval)
    leave(stage, anna, finance)
    vote(stage, ben, approval)
    assert stage.get(Approval, approval.id).status == "pending"
    vote(stage, cleo, approval)
    tool_call = stage.get(ToolCall, approval.tool_call_id)
    assert tool_call.status == "queued"
    leave(stage, cleo, finance)
    assert stage.claim_call(tool_call) is None, "the call is judged again when it begins"
    assert stage.get(ToolCall, tool_call.id).status == "asked"


def test_a_grant_needs_the_quorum_that_the_call_needs(
    stage: Stage, anna: Somebody, ben: Somebody, two_of_finance: dict[str, Any]
) -> None:
    session = stage.session(approval=two_of_finance)
    approval = ask(stage, session)
    vote(stage, anna, approval, scope="session")
    assert stage.events(session, "grant.given") == []
    vote(stage, ben, approval)
    assert stage.events(session, "grant.given") == [], "only one of the two asked for it"
    stage.run_call(stage.get(ToolCall, approval.tool_call_id))
    [tool_call] = stage.reply(session, call())
    again = stage.approvals(session)[-1]
    assert again.tool_call_id == tool_call.id
    vote(stage, anna, again, scope="session")
    vote(stage, ben, again, scope="session")
    assert len(stage.events(session, "grant.given")) == 1
    stage.run_call(stage.get(ToolCall, tool_call.id))
    [granted] = stage.reply(session, call())
    assert granted.status == "queued"


def test_a_grant_does_not_bypass_a_quorum_that_came_later(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    """Neither for a new call nor for an allowed one that has not begun."""
    session = stage.session()
    stage.decide(ask(stage, session), result="allow", scope="session")
    stage.run_call(stage.get(ToolCall, stage.approvals(session)[0].tool_call_id))
    [granted] = stage.reply(session, call())
    assert granted.status == "queued"
    stage.change_policies(approval={"required_approvals": 2})
    assert stage.claim_call(granted) is None
    approval = stage.approvals(session)[-1]
    assert (approval.tool_call_id, approval.status) == (granted.id, "pending")
    vote(stage, anna, approval)
    vote(stage, ben, approval)
    stage.run_call(stage.get(ToolCall, granted.id))
    [later] = stage.reply(session, call())
    assert later.status == "asked"


def test_a_decision_before_a_quorum_was_required_does_not_let_the_call_begin(stage: Stage, anna: Somebody) -> None:
    session = stage.session()
    approval = ask(stage, session)
    stage.decide(approval, result="allow")
    stage.change_policies(approval={"required_approvals": 2})
    tool_call = stage.get(ToolCall, approval.tool_call_id)
    assert stage.claim_call(tool_call) is None
    assert stage.approvals(session)[-1].quorum == {"approvers": [], "required": 2, "four_eyes": False}


def test_the_demands_of_all_levels_apply_together(stage: Stage, anna: Somebody, finance: str) -> None:
    legal = group(stage, "legal")
    both = member(stage, groups=[finance, legal])
    stage.change_policies(approval={"approvers": [f"group:{legal}"], "required_approvals": 1})
    session = stage.session(approval={"approvers": [f"group:{finance}"]})
    approval = ask(stage, session)
    with transaction(stage.workspace_id) as db:
        demands = requirements(db, approval)
    assert demands["approvers"] == [[f"group:{legal}"], [f"group:{finance}"]]
    with pytest.raises(Forbidden):
        vote(stage, anna, approval)
    vote(stage, both, approval)
    assert stage.get(Approval, approval.id).status == "allowed"


def test_a_new_quorum_holds_for_waiting_calls(stage: Stage, anna: Somebody) -> None:
    approval = ask(stage, stage.session())
    stage.change_policies(approval={"required_approvals": 2})
    with pytest.raises(Forbidden):
        stage.decide(approval, result="allow")
    vote(stage, anna, approval)
    assert stage.get(Approval, approval.id).status == "pending"


def test_a_rerun_of_an_unknown_outcome_needs_the_same_people(
    stage: Stage, anna: Somebody, ben: Somebody, two_of_finance: dict[str, Any]
) -> None:
    session = stage.session(approval=two_of_finance)
    approval = ask(stage, session)
    vote(stage, anna, approval)
    vote(stage, ben, approval)
    held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
    stage.worked(held, lambda locked: lose_call(locked, held.as_held(locked.db)))
    unknown = stage.approvals(session)[-1]
    with pytest.raises(Forbidden):
        stage.decide(unknown, outcome="rerun")
    vote(stage, anna, unknown, result=None, outcome="rerun")
    assert stage.get(ToolCall, held.id).status == "unknown"
    vote(stage, ben, unknown, result=None, outcome="rerun")
    assert stage.get(ToolCall, held.id).status == "queued"


def test_a_new_member_of_the_group_may_decide(stage: Stage, ben: Somebody, finance: str) -> None:
    late = member(stage)
    approval = ask(stage, stage.session(approval={"approvers": [f"group:{finance}"]}))
    with pytest.raises(Forbidden):
        vote(stage, late, approval)
    with transaction(stage.workspace_id) as db:
        now = approval.created_at
        db.insert(Membership(group_id=finance, person_id=late.person_id, workspace_id=stage.workspace_id, created_at=now))
    vote(stage, late, approval)
    assert stage.get(Approval, approval.id).status == "allowed"


def test_only_votes_for_the_decision_count_when_the_quorum_is_tightened(
    stage: Stage, anna: Somebody, ben: Somebody, finance: str, two_of_finance: dict[str, Any]
) -> None:
    cleo = member(stage, groups=[finance])
    stage.change_policies(approval=two_of_finance)
    session = stage.session(max_turns=9)
    approval = ask(stage, session)
    vote(stage, cleo, approval, respond=({"type": "text", "text": "I did it by hand."},))
    vote(stage, anna, approval)
    vote(stage, ben, approval)
    stage.change_policies(approval=two_of_finance | {"required_approvals": 3})
    tool_call = stage.get(ToolCall, approval.tool_call_id)
    assert stage.claim_call(tool_call) is None, "cleo did not vote to run it"
    assert stage.get(ToolCall, approval.tool_call_id).status == "asked"
    with pytest.raises(Conflict, match="already allowed"):
        vote(stage, cleo, approval, respond=({"type": "text", "text": "I did it by hand."},))


def test_only_voters_for_the_decision_are_voters_of_its_grant(
    stage: Stage, anna: Somebody, ben: Somebody, finance: str, two_of_finance: dict[str, Any]
) -> None:
    cleo = member(stage, groups=[finance])
    session = stage.session(approval=two_of_finance)
    approval = ask(stage, session)
    vote(stage, cleo, approval, respond=({"type": "text", "text": "I did it by hand."},))
    vote(stage, anna, approval, scope="session")
    vote(stage, ben, approval, scope="session")
    with transaction(stage.workspace_id) as db:
        [grant] = db.find(Grant)
    assert {ballot[0] for ballot in grant.voters or ()} == {anna.person_id, ben.person_id}


def test_only_votes_to_rerun_count_for_a_rerun(
    stage: Stage, anna: Somebody, ben: Somebody, finance: str, two_of_finance: dict[str, Any], clock: Any
) -> None:
    cleo = member(stage, groups=[finance])
    stage.change_policies(approval=two_of_finance)
    session = stage.session(max_turns=9)
    approval = ask(stage, session)
    vote(stage, anna, approval)
    vote(stage, ben, approval)
    held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
    stage.lose(held, clock)
    unknown = stage.approvals(session)[-1]
    happened = [{"type": "text", "text": "The log says that it ran."}]
    vote(stage, cleo, unknown, result=None, outcome="happened", content=happened)
    vote(stage, anna, unknown, result=None, outcome="rerun")
    vote(stage, ben, unknown, result=None, outcome="rerun")
    assert stage.get(ToolCall, held.id).status == "queued"
    stage.change_policies(approval=two_of_finance | {"required_approvals": 3})
    assert stage.claim_call(stage.get(ToolCall, held.id)) is None
