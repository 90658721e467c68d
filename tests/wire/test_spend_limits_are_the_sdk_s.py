"""The SDK's client sets, lists and deletes spend limits, at its own address. `/v1/spend_limits` does the same."""

from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from rows.stage import Stage
from rows.test_a_session_stays_within_its_budget import QUOTE


def scope(stage: Stage) -> Any:
    return {"type": "workspace", "workspace_id": stage.workspace_id}


def test_a_limit_is_set_replaced_and_deleted(sdk: Anthropic, stage: Stage) -> None:
    limits = sdk.beta.organization.spend_limits
    created = limits.set(amount="50000", scope=scope(stage), period="weekly")
    assert (created.amount, created.currency, created.period, created.is_enabled) == ("50000", "USD", "weekly", True)
    assert created.scope.model_dump() == scope(stage)
    replaced = limits.set(amount=None, scope=scope(stage), period="weekly")
    assert (replaced.id, replaced.amount) == (created.id, None)
    monthly = limits.set(amount="0", scope=scope(stage))
    assert monthly.period == "monthly"
    assert [row.id for row in limits.list(limit=1, scope_type=["workspace"])] == [monthly.id, created.id]
    assert limits.retrieve(created.id) == replaced
    assert limits.delete(created.id).type == "spend_limit_deleted"
    with pytest.raises(anthropic.NotFoundError, match="spend limit"):
        limits.retrieve(created.id)


def test_a_limit_of_an_agent_stops_its_session(sdk: Anthropic, stage: Stage) -> None:
    """Requests name the scope `agent`, which the SDK's types do not have, by `/v1/spend_limits`."""
    stage.quote = QUOTE
    session = stage.session(model="claude-opus-5-5")
    body = {"amount": "99", "scope": {"type": "agent", "agent_id": stage.read(session).agent_id}}
    response: Any = sdk.post("/v1/spend_limits", body=body, cast_to=object)
    assert response["scope"] == body["scope"]
    stage.message(session)
    assert stage.claim(session) is None
    [approval] = stage.approvals(session)
    assert approval.rule == "the agent's monthly limit of $0.99 is reached"


@pytest.mark.parametrize(("change", "field"), [({"amount": "1.5"}, "amount"), ({"scope": {"type": "organization"}}, "scope")])
def test_what_is_wrong_is_named(sdk: Anthropic, stage: Stage, change: Any, field: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=field):
        sdk.beta.organization.spend_limits.set(**({"amount": "100", "scope": scope(stage)} | change))
