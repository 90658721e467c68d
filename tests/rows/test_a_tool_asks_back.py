"""A tool's question is an approval of kind `question`. The call waits, and goes on with the answers."""

from typing import Any

import pytest
from rows.stage import Stage, call, entry, say

from models.errors import Invalid
from models.pure.text import words
from models.session.approval.row import Approval
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall
from models.workspace import toolset

FORM = {"type": "object", "properties": {"email": {"type": "string"}}, "required": ["email"]}
QUESTION = {"requests": {"who": {"message": "Whose?", "schema": FORM}}, "state": "opaque"}
ANSWER = {"who": {"action": "accept", "content": {"email": "a@b.example"}}}


@pytest.fixture
def parked(stage: Stage) -> ToolCall:
    """A call that a policy allowed, and that then asked back."""
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"}, shop="always_allow")
    tool_call = stage.propose(session, call("mcp__shop__refund", n=1))
    stage.finish_call(stage.begin_call(tool_call), "", question=QUESTION)
    return stage.get(ToolCall, tool_call.id)


def _question(stage: Stage, parked: ToolCall) -> Approval:
    return stage.approvals(parked.session_id)[-1]


def asked_back(stage: Stage, **decision: Any) -> tuple[str, ToolCall]:
    """A call that a person allowed, and that then asked back."""
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"})
    tool_call = stage.propose(session, call("mcp__shop__refund", n=1))
    stage.confirm(session, tool_call.id, **decision)
    stage.finish_call(stage.begin_call(tool_call), "", question=QUESTION)
    return session, tool_call


def test_a_person_sees_the_form_and_nothing_runs_meanwhile(stage: Stage, parked: ToolCall) -> None:
    question = _question(stage, parked)
    assert (question.kind, question.status, question.questions) == ("question", "pending", QUESTION["requests"])
    assert parked.status == "asked"
    assert stage.claim_call(parked) is None
    assert stage.read(parked.session_id).stop_reason == {"type": "requires_action", "event_ids": [parked.id]}
    stage.check(parked.session_id)


def test_the_call_goes_on_with_the_answers(stage: Stage, parked: ToolCall) -> None:
    stage.decide(_question(stage, parked), result="allow", answers=ANSWER)
    held = stage.begin_call(parked)
    stored = stage.get(CallInput, held.id)
    assert (held.attempt, stored.answers, (stored.question or {})["state"]) == (2, ANSWER, "opaque")
    assert held.id == parked.id
    stage.finish_call(held, "Refunded.")
    stage.reply(parked.session_id, say("Done."))
    stage.check(parked.session_id)


def test_a_tool_may_ask_again(stage: Stage, parked: ToolCall) -> None:
    stage.decide(_question(stage, parked), result="allow", answers=ANSWER)
    held = stage.begin_call(parked)
    stage.finish_call(held, "", question=QUESTION | {"state": "two"})
    assert _question(stage, parked).status == "pending"
    stage.decide(_question(stage, parked), result="allow", answers={"who": {"action": "decline"}})
    held = stage.begin_call(parked)
    assert stage.get(CallInput, held.id).answers == {"who": {"action": "decline"}}


@pytest.mark.parametrize(
    ("answers", "field"),
    [
        (None, "answers.who"),
        ({}, "answers.who"),
        ({"who": {"action": "accept", "content": {}}}, "answers.who.content"),
        (ANSWER | {"what": {"action": "cancel"}}, "answers.what"),
    ],
)
def test_an_answer_that_does_not_fit_decides_nothing(stage: Stage, parked: ToolCall, answers: Any, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        stage.decide(_question(stage, parked), result="allow", answers=answers)
    assert refused.value.field == field
    assert _question(stage, parked).status == "pending"


@pytest.mark.parametrize("decision", [{"updated_input": {"n": 2}}, {"respond": (say("No."),)}, {"scope": "session"}])
def test_a_question_takes_answers_and_nothing_else(stage: Stage, parked: ToolCall, decision: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="asks something"):
        stage.decide(_question(stage, parked), result="allow", answers=ANSWER, **decision)


def test_a_denial_ends_the_call(stage: Stage, parked: ToolCall) -> None:
    stage.decide(_question(stage, parked), result="deny", deny_message="Not your business.")
    assert "Not your business." in stage.result(parked)
    assert stage.claim_call(parked) is None
    stage.reply(parked.session_id, say("I see."))
    stage.check(parked.session_id)


def test_the_model_is_told_if_nobody_answers(stage: Stage, parked: ToolCall, clock: Any) -> None:
    clock.advance(86_401)
    assert stage.expire(parked.session_id) == 1
    assert "nobody answered" in stage.result(parked)
    stage.reply(parked.session_id, say("I see."))
    stage.check(parked.session_id)


def test_an_end_of_the_run_cancels_the_call(stage: Stage, parked: ToolCall) -> None:
    stage.send(parked.session_id, {"type": "user.interrupt"})
    assert stage.get(ToolCall, parked.id).status == "cancelled"
    assert "asked the user" in stage.result(parked)
    stage.check(parked.session_id)


def test_a_call_cancelled_while_it_runs_asks_nobody(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"}, shop="always_allow")
    tool_call = stage.propose(session, call("mcp__shop__refund", n=1))
    stage.begin_call(tool_call)
    stage.send(session, {"type": "user.interrupt"})
    stage.finish_call(stage.get(ToolCall, tool_call.id), "", question=QUESTION)
    assert not stage.approvals(session)
    assert (stage.result(tool_call), stage.get(ToolCall, tool_call.id).is_error) == (words.cancelled_asking(), True)
    assert stage.read(session).status == "idle"
    stage.check(session)


def test_an_end_of_the_run_withdraws_the_question_and_not_the_allow_before_it(stage: Stage) -> None:
    session, _ = asked_back(stage)
    stage.send(session, {"type": "user.interrupt"})
    assert [approval.status for approval in stage.approvals(session)] == ["allowed", "cancelled"]
    stage.check(session)


def test_a_call_that_asked_back_and_whose_grant_was_revoked_needs_an_approval_again(stage: Stage) -> None:
    """The approval is about the call, not the tool's question, which was answered."""
    session, tool_call = asked_back(stage, scope="session")
    stage.decide(_question(stage, tool_call), result="allow", answers=ANSWER)
    stage.finish_call(stage.begin_call(tool_call))
    [second] = stage.reply(session, call("mcp__shop__refund", n=2))
    stage.finish_call(stage.begin_call(second), "", question=QUESTION)
    stage.decide(_question(stage, second), result="allow", answers=ANSWER)
    stage.revoke_grants()
    assert stage.claim_call(second) is None
    first, again = stage.approvals(session)[0], _question(stage, second)
    assert (again.kind, again.status, again.questions) == ("tool_call", "pending", None)
    assert again.prompt == first.prompt


def test_the_first_confirmation_sent_again_does_not_answer_the_question(stage: Stage) -> None:
    """It belongs to the approval that it first decided."""
    session, tool_call = asked_back(stage)
    stage.confirm(session, tool_call.id)
    assert _question(stage, tool_call).status == "pending"
    stage.confirm(session, tool_call.id, answers=ANSWER)
    assert stage.claim_call(tool_call)
