"""The SDK's client creates, raises and removes a session's budget, and reads costs and reasons."""

from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from doors.served import MODEL, message
from rows.spending import COSTS_10, QUOTE, spent
from rows.stage import Stage, say


def cents(amount: str) -> Any:
    """Return a budget of so many cents."""
    return {"type": "limit", "max_list_cost": {"amount": amount, "currency": "USD"}}


def create(sdk: Anthropic, model: Any = MODEL, **more: Any) -> Any:
    """Start a session of a new agent with this model."""
    agent = sdk.beta.agents.create(name="A", model=model)
    environment = sdk.beta.environments.list().data[0].id
    first: Any = message("Go.")
    return sdk.beta.sessions.create(agent=agent.id, environment_id=environment, initial_events=[first], **more)


def test_a_budget_is_reached_and_raised(sdk: Anthropic, stage: Stage) -> None:
    stage.quote = QUOTE
    session = create(sdk, budget=cents("150"))
    assert session.budget
    assert session.budget.max_list_cost.amount == "150"
    stage.reply(session.id, say("That was $10."), charge=COSTS_10)
    more: Any = message("More.")
    sdk.beta.sessions.events.send(session.id, events=[more])
    assert stage.claim(session.id) is None
    resting = sdk.beta.sessions.retrieve(session.id)
    assert resting.status == "idle"
    assert resting.usage.list_cost
    assert (resting.usage.list_cost.amount, resting.usage.list_cost.currency) == ("1000", "USD")
    assert [waiting["kind"] for waiting in resting.waiting_on] == ["budget"]
    events = list(sdk.beta.sessions.events.list(session.id))
    assert events[-1].type == "session.status_idle"
    assert events[-1].stop_reason.type == "budget_reached"
    assert [event.budget.max_list_cost.amount for event in events if event.type == "session.usage" and event.budget] == ["150"] * 2
    with pytest.raises(anthropic.BadRequestError) as lowered:
        sdk.beta.sessions.update(session.id, budget=cents("1000"))
    assert lowered.value.error_code == "budget_not_raised"
    raised = sdk.beta.sessions.update(session.id, budget=cents("2500"))
    assert (raised.status, raised.budget and raised.budget.max_list_cost.amount) == ("running", "2500")
    stage.reply(session.id, say("Done."), charge=COSTS_10)
    stats = sdk.beta.sessions.retrieve(session.id).stats
    assert stats.duration_seconds is not None
    assert stats.active_seconds is not None
    assert sdk.beta.sessions.update(session.id, budget=None).budget is None
    with pytest.raises(anthropic.BadRequestError) as again:
        sdk.beta.sessions.update(session.id, budget=cents("9999"))
    assert again.value.error_code == "budget_create_only"


def test_an_allow_by_the_api_raises_a_budget(sdk: Anthropic, stage: Stage) -> None:
    stage.quote = QUOTE
    [approval] = stage.approvals(spent(stage))
    sdk.post(f"/v1/approvals/{approval.id}/decision", body={"result": "allow"}, cast_to=object)
    assert (stage.read(approval.session_id).status, stage.read(approval.session_id).max_list_cost) == ("running", 20)


@pytest.mark.parametrize("model", ["stand-in", {"id": MODEL, "fallbacks": ["stand-in"]}])
def test_a_model_or_fallback_without_a_price_is_refused(sdk: Anthropic, model: Any) -> None:
    with pytest.raises(anthropic.BadRequestError, match="stand-in has no price") as refused:
        create(sdk, model=model, budget=cents("100"))
    assert refused.value.error_code == "model_not_budgetable"
    assert list(sdk.beta.sessions.list()) == [], "no session is left behind"


@pytest.mark.parametrize("amount", ["0", "01", "1.5", "-1", "", "9" * 13])
def test_an_amount_is_cents_in_a_string(sdk: Anthropic, amount: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"budget\.max_list_cost\.amount"):
        create(sdk, budget=cents(amount))
