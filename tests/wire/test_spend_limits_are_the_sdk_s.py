"""The SDK's client sets, lists and deletes spend limits, at its own address. `/v1/spend_limits` does the same."""

from decimal import Decimal
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from doors.served import Caller, key
from rows.stage import Stage
from rows.test_a_session_stays_within_its_budget import QUOTE

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.workspace.api_key import ApiKey
from models.workspace.spend_limit import SpendLimit


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


def test_the_audit_says_who_set_changed_and_deleted_a_limit(sdk: Anthropic, stage: Stage) -> None:
    limits = sdk.beta.organization.spend_limits
    limit_id = limits.set(amount="50000", scope=scope(stage)).id
    limits.set(amount="50000", scope=scope(stage))
    limits.set(amount="1050", scope=scope(stage))
    limits.delete(limit_id)
    with transaction(stage.workspace_id) as db:
        acts = db.find(Audit, "WHERE subject_id = %(id)s ORDER BY seq", id=limit_id)
        [key] = db.find(ApiKey)
    of = {"scope": "workspace", "scope_id": stage.workspace_id, "period": "monthly"}
    assert [(act.action, act.principal, act.details) for act in acts] == [
        ("spend_limit.set", f"api_key:{key.id}", of | {"to": "500"}),
        ("spend_limit.set", f"api_key:{key.id}", of | {"from": "500", "to": "10.5"}),
        ("spend_limit.deleted", f"api_key:{key.id}", of | {"from": "10.5"}),
    ]


@pytest.mark.parametrize("prefix", ["/v1/spend_limits", "/v1/organizations/spend_limits"])
def test_a_key_without_the_scope_is_refused(api: str, stage: Stage, prefix: str) -> None:
    with transaction(stage.workspace_id) as db:
        row = SpendLimit.put(db, stage.principal, ("workspace", stage.workspace_id), "monthly", Decimal(5))
    body = {"amount": "100", "scope": scope(stage)}
    with Caller(api, key(stage, "agents", "sessions", "approvals", "read")) as caller:
        paths = {"POST": [prefix], "GET": [prefix, f"{prefix}/{row.id}", f"{prefix}/effective"], "DELETE": [f"{prefix}/{row.id}"]}
        for method, path in [(method, path) for method, each in paths.items() for path in each]:
            response = caller.request(method, path, json=body if method == "POST" else None)
            assert (response.status_code, "admin" in response.json()["error"]["message"]) == (403, True), f"{method} {path}"
    assert stage.get(SpendLimit, row.id).amount == 5


@pytest.mark.parametrize(("change", "field"), [({"amount": "1.5"}, "amount"), ({"scope": {"type": "organization"}}, "scope")])
def test_what_is_wrong_is_named(sdk: Anthropic, stage: Stage, change: Any, field: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=field):
        sdk.beta.organization.spend_limits.set(**({"amount": "100", "scope": scope(stage)} | change))
