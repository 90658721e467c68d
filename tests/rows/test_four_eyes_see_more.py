"""With `four_eyes`, people who started the run or sent it a message do not decide its calls."""

from typing import Any

import pytest
from people import Somebody, member
from rows.stage import Stage, call, say
from rows.voting import vote

from models.errors import Forbidden, Invalid
from models.flow.begin.messages import receive
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall

FOUR_EYES = {"four_eyes": True}


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage)


@pytest.fixture
def ben(stage: Stage) -> Somebody:
    return member(stage)


def tell(stage: Stage, session_id: str, who: Somebody | None, text: str = "Do it.", **more: Any) -> None:
    """Send a message as a person, or as the API key."""
    by = who.principal if who else stage.principal
    event = {"type": "user.message", "content": [say(text)], **more}
    stage.locked(session_id, lambda locked: receive(locked, [event]), by)


def session_of(stage: Stage, who: Somebody) -> str:
    """A session that needs four eyes, created on behalf of a person."""
    return stage.session(approval=FOUR_EYES, on_behalf_of=f"user:{who.person_id}")


def test_the_person_that_the_key_speaks_for_does_not_decide(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    session = session_of(stage, anna)
    tell(stage, session, None)
    stage.reply(session, call())
    [approval] = stage.approvals(session)
    assert approval.started_by == [anna.person_id]
    with pytest.raises(Forbidden, match="You started this run"):
        vote(stage, anna, approval)
    with pytest.raises(Forbidden, match="An API key may not decide"):
        stage.decide(approval, result="allow")
    vote(stage, ben, approval)
    assert stage.get(Approval, approval.id).status == "allowed"
    assert stage.claim_call(stage.get(ToolCall, approval.tool_call_id))


def test_a_person_who_sent_a_message_does_not_decide(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    session = session_of(stage, anna)
    tell(stage, session, ben)
    stage.reply(session, call())
    [approval] = stage.approvals(session)
    with pytest.raises(Forbidden):
        vote(stage, ben, approval)
    assert stage.events(session, "user.message")[0].body["on_behalf_of"] == f"user:{ben.person_id}"


def test_a_message_can_name_its_person(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    session = session_of(stage, anna)
    tell(stage, session, None, on_behalf_of=f"user:{ben.person_id}")
    assert stage.read(session).speakers == sorted([anna.person_id, ben.person_id])


def test_a_session_or_message_must_name_its_person(stage: Stage, anna: Somebody) -> None:
    with pytest.raises(Invalid, match="on_behalf_of: calls of this agent or its sub-agents need four eyes"):
        stage.session(approval=FOUR_EYES)
    session = stage.session()
    stage.change_policies(approval=FOUR_EYES)
    with pytest.raises(Invalid, match=r"events\.0\.on_behalf_of: calls of this agent or its sub-agents need four eyes"):
        tell(stage, session, None)
    tell(stage, session, anna)


def test_a_waiting_call_whose_run_names_nobody_can_only_be_denied_once_four_eyes_are_required(stage: Stage, anna: Somebody) -> None:
    session = stage.session()
    tell(stage, session, None)
    stage.reply(session, call())
    [approval] = stage.approvals(session)
    stage.change_policies(approval=FOUR_EYES)
    with pytest.raises(Forbidden, match="this call can only be denied"):
        vote(stage, anna, approval)
    vote(stage, anna, approval, "deny")
    assert stage.get(Approval, approval.id).status == "denied"


def test_a_grant_does_not_apply_to_runs_of_its_own_giver(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    first = session_of(stage, anna)
    tell(stage, first, None)
    stage.reply(first, call())
    [approval] = stage.approvals(first)
    vote(stage, ben, approval, scope="always")
    agent_id = stage.read(first).agent_id
    others = stage.session(of_agent=agent_id, on_behalf_of=f"user:{anna.person_id}")
    tell(stage, others, None)
    assert stage.reply(others, call())[0].status == "queued"
    own = stage.session(of_agent=agent_id, on_behalf_of=f"user:{ben.person_id}")
    tell(stage, own, None)
    assert stage.reply(own, call())[0].status == "asked"


def test_on_behalf_of_names_an_active_member_and_a_person_names_nobody_else(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    with pytest.raises(Invalid, match="not an active member"):
        stage.session(on_behalf_of="user:user_nobody")
    session = stage.session()
    with pytest.raises(Invalid, match="you speak for yourself"):
        tell(stage, session, anna, on_behalf_of=f"user:{ben.person_id}")
