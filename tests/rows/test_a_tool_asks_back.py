"""A tool's question to the user is an approval of kind `question`; the call is parked, and goes on with the answers."""

from typing import Any

import pytest
from rows.stage import Stage, call, entry, say

from models.database.transactions import transaction
from models.errors import Invalid
from models.pure import words
from models.session.approval import Approval
from models.session.call_input import CallInput
from models.session.grant import Grant
from models.session.tool_call import ToolCall
from models.workspace import toolset

FORM = {"type": "object", "properties": {"email": {"type": "string"}}, "required": ["email"]}
QUESTION = {"requests": {"who": {"message": "Whose?", "schema": FORM}}, "state": "opaque"}
ANSWER = {"who": {"action": "accept", "content": {"email": "a@b.example"}}}


@pytest.fixture
def parked(stage: Stage) -> ToolCall:
    """A call that was allowed, began, and asked."""
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"}, shop="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call("mcp__shop__refund", n=1))
    held = stage.claim_call(found)
    assert held
    stage.finish_call(held, "", question=QUESTION)
    return stage.get(ToolCall, found.id)


def _asked(stage: Stage, parked: ToolCall) -> Approval:
    return stage.approvals(parked.session_id)[-1]


def claimed(stage: Stage, found: ToolCall) -> ToolCall:
    held = stage.claim_call(found)
    assert held
    return held


def asked_back(stage: Stage, **said: Any) -> tuple[str, ToolCall]:
    """A call that a person allowed, and that then asked."""
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"})
    stage.message(session)
    [found] = stage.reply(session, call("mcp__shop__refund", n=1))
    stage.confirm(session, found.id, **said)
    stage.finish_call(claimed(stage, found), "", question=QUESTION)
    return session, found


def test_a_person_sees_the_form_and_nothing_runs_meanwhile(stage: Stage, parked: ToolCall) -> None:
    asked = _asked(stage, parked)
    assert (asked.kind, asked.status, asked.questions) == ("question", "pending", QUESTION["requests"])
    assert parked.status == "asked"
    assert stage.claim_call(parked) is None
    assert stage.read(parked.session_id).stop_reason == {"type": "requires_action", "event_ids": [parked.id]}
    stage.check(parked.session_id)


def test_the_call_goes_on_with_the_answers(stage: Stage, parked: ToolCall) -> None:
    stage.decide(_asked(stage, parked), result="allow", answers=ANSWER)
    held = stage.claim_call(parked)
    assert held
    stored = stage.get(CallInput, held.id)
    assert (held.attempt, stored.answers, (stored.question or {})["state"]) == (2, ANSWER, "opaque")
    assert held.id == parked.id
    stage.finish_call(held, "Refunded.")
    stage.reply(parked.session_id, say("Done."))
    stage.check(parked.session_id)


def test_it_may_ask_again(stage: Stage, parked: ToolCall) -> None:
    stage.decide(_asked(stage, parked), result="allow", answers=ANSWER)
    held = stage.claim_call(parked)
    assert held
    stage.finish_call(held, "", question=QUESTION | {"state": "two"})
    assert _asked(stage, parked).status == "pending"
    stage.decide(_asked(stage, parked), result="allow", answers={"who": {"action": "decline"}})
    held = stage.claim_call(parked)
    assert held
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
        stage.decide(_asked(stage, parked), result="allow", answers=answers)
    assert refused.value.field == field
    assert _asked(stage, parked).status == "pending"


@pytest.mark.parametrize("said", [{"updated_input": {"n": 2}}, {"respond": (say("No."),)}, {"scope": "session"}])
def test_it_takes_answers_and_nothing_else(stage: Stage, parked: ToolCall, said: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="asks something"):
        stage.decide(_asked(stage, parked), result="allow", answers=ANSWER, **said)


def test_a_denial_ends_the_call(stage: Stage, parked: ToolCall) -> None:
    stage.decide(_asked(stage, parked), result="deny", deny_message="Not your business.")
    assert "Not your business." in stage.result(parked)
    assert stage.claim_call(parked) is None
    stage.reply(parked.session_id, say("I see."))
    stage.check(parked.session_id)


def test_nobody_answers(stage: Stage, parked: ToolCall, clock: Any) -> None:
    clock.advance(86_401)
    assert stage.expire(parked.session_id) == 1
    assert "nobody answered" in stage.result(parked)
    stage.reply(parked.session_id, say("I see."))
    stage.check(parked.session_id)


def test_an_end_of_the_run_ends_it(stage: Stage, parked: ToolCall) -> None:
    stage.send(parked.session_id, {"type": "user.interrupt"})
    assert stage.get(ToolCall, parked.id).status == "cancelled"
    assert "asked the user" in stage.result(parked)
    stage.check(parked.session_id)


def test_a_call_that_was_cancelled_while_it_ran_asks_nobody(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund")]})
    session = stage.session(servers={"shop": "assent:orders"}, shop="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call("mcp__shop__refund", n=1))
    held = stage.claim_call(found)
    assert held
    stage.send(session, {"type": "user.interrupt"})
    stage.finish_call(stage.get(ToolCall, found.id), "", question=QUESTION)
    assert not stage.approvals(session)
    assert (stage.result(found), stage.get(ToolCall, found.id).is_error) == (words.cancelled_asking(), True)
    assert stage.read(session).status == "idle"
    stage.check(session)


def test_an_end_of_the_run_takes_back_the_question_and_not_the_allow_before_it(stage: Stage) -> None:
    session, _ = asked_back(stage)
    stage.send(session, {"type": "user.interrupt"})
    assert [approval.status for approval in stage.approvals(session)] == ["allowed", "cancelled"]
    stage.check(session)


def test_a_call_that_asked_back_and_whose_grant_is_gone_is_asked_about_as_a_call(stage: Stage) -> None:
    """Not with the tool's question, which was answered."""
    session, found = asked_back(stage, scope="session")
    stage.decide(_asked(stage, found), result="allow", answers=ANSWER)
    stage.finish_call(claimed(stage, found))
    [second] = stage.reply(session, call("mcp__shop__refund", n=2))
    stage.finish_call(claimed(stage, second), "", question=QUESTION)
    stage.decide(_asked(stage, second), result="allow", answers=ANSWER)
    with transaction(stage.workspace_id) as db:
        db.find(Grant)[0].revoke(db, stage.principal)
    assert stage.claim_call(second) is None
    first, again = stage.approvals(session)[0], _asked(stage, second)
    assert (again.kind, again.status, again.questions) == ("tool_call", "pending", None)
    assert again.prompt == first.prompt


def test_the_confirmation_that_let_it_run_sent_again_answers_nothing(stage: Stage) -> None:
    """Fault 37 in this place: it belongs to the approval that it first decided."""
    session, found = asked_back(stage)
    stage.confirm(session, found.id)
    assert _asked(stage, found).status == "pending"
    stage.confirm(session, found.id, answers=ANSWER)
    assert stage.claim_call(found)
