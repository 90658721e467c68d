"""The SDK sets, lists and deletes spend limits at its own path. `/v1/spend_limits` does the same."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import anthropic
import people
import pytest
from anthropic import Anthropic
from doors.served import Caller, key
from own_database import Clock
from rows.spending import QUOTE, limit, spend_10
from rows.stage import Stage

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.flow.spend import limits
from models.workspace.api_key import ApiKey
from models.workspace.spend_limit import SpendLimit


def scope(stage: Stage) -> Any:
    """Return the scope of the stage's workspace."""
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
    """The SDK's types lack the scope `agent`, so the request goes to `/v1/spend_limits`."""
    stage.quote = QUOTE
    session = stage.session(model="claude-opus-5-5")
    body = {"amount": "99", "scope": {"type": "agent", "agent_id": stage.read(session).agent_id}}
    response: Any = sdk.post("/v1/spend_limits", body=body, cast_to=object)
    assert response["scope"] == body["scope"]
    stage.message(session)
    assert stage.claim(session) is None
    [approval] = stage.approvals(session)
    assert approval.rule == "the agent's monthly limit of $0.99 is reached"


def test_the_lowest_limit_of_each_person_is_listed_with_what_they_spent(sdk: Anthropic, stage: Stage, clock: Clock) -> None:
    """The person's own limit or the workspace's. Limits of agents are not listed, and neither are people without a limit."""
    clock.advance(seconds_to_a_wednesday())
    limits = sdk.beta.organization.spend_limits
    anna, bert = people.member(stage, "developer", email="anna@example.com"), people.member(stage, "viewer")
    stage.quote = QUOTE
    session = spend_10(stage, on_behalf_of=anna.person_id)
    limit(stage, "5000", ("agent", stage.read(session).agent_id))
    assert list(limits.effective.list()) == []
    own = limits.set(amount="1200", scope={"type": "user", "user_id": anna.person_id}, period="weekly")
    [row] = limits.effective.list()
    assert (row.amount, row.period, row.period_to_date_spend, row.spend_limit_id) == ("1200", "weekly", "1000", own.id)
    assert row.actor.model_dump() == {
        "type": "user_actor",
        "user_id": anna.person_id,
        "name": "anna",
        "email_address": "anna@example.com",
        "deleted": False,
    }
    assert row.source == row.scope
    lower = limits.set(amount="900", scope=scope(stage), period="weekly")
    unlimited = limits.set(amount=None, scope=scope(stage), period="daily")
    rows = list(limits.effective.list(limit=1))
    expected = [(bert, unlimited, "0"), (bert, lower, "0"), (anna, unlimited, "1000"), (anna, lower, "1000")]
    assert [(r.scope.user_id, r.spend_limit_id, r.period_to_date_spend) for r in rows if r.scope.type == "user"] == [
        (who.person_id, row.id, spent) for who, row, spent in expected
    ]
    assert [r.amount for r in rows] == [None, "900", None, "900"]
    [row] = limits.effective.list(period=["weekly"], user_ids=[anna.person_id])
    assert row.source.model_dump() == scope(stage)
    clock.advance(7 * 86_400)
    [row] = limits.effective.list(period=["weekly"], user_ids=[anna.person_id])
    assert row.period_to_date_spend == "0"


def seconds_to_a_wednesday() -> float:
    """Return the seconds to the next Wednesday noon, so that neither a week nor a day ends while the test runs."""
    now = datetime.now(UTC)
    noon = now.replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=(2 - now.weekday()) % 7)
    return (noon - now).total_seconds() % (7 * 86_400)


def test_requests_for_a_higher_limit_are_refused_with_the_remedy(sdk: Anthropic) -> None:
    requests = sdk.beta.organization.spend_limits.increase_requests
    for act in (requests.list, lambda: requests.approve("slir_1", amount="100")):
        with pytest.raises(anthropic.NotFoundError, match="an approval of the kind `budget` waits for people"):
            act()


def test_the_audit_names_the_principal_and_the_amounts_of_each_change(sdk: Anthropic, stage: Stage) -> None:
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
        row = limits.set_limit(db, stage.principal, ("workspace", stage.workspace_id), "monthly", Decimal(5))
    body = {"amount": "100", "scope": scope(stage)}
    with Caller(api, key(stage, "agents", "sessions", "approvals", "read")) as caller:
        paths = {"POST": [prefix], "GET": [prefix, f"{prefix}/{row.id}", f"{prefix}/effective"], "DELETE": [f"{prefix}/{row.id}"]}
        for method, path in [(method, path) for method, each in paths.items() for path in each]:
            response = caller.request(method, path, json=body if method == "POST" else None)
            assert (response.status_code, "admin" in response.json()["error"]["message"]) == (403, True), f"{method} {path}"
    assert stage.get(SpendLimit, row.id).amount == 5


@pytest.mark.parametrize(("change", "field"), [({"amount": "1.5"}, "amount"), ({"scope": {"type": "organization"}}, "scope")])
def test_an_invalid_field_is_named(sdk: Anthropic, stage: Stage, change: Any, field: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=field):
        sdk.beta.organization.spend_limits.set(**({"amount": "100", "scope": scope(stage)} | change))
