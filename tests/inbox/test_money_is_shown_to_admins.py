"""The pages of usage, spend limits and provider keys, for admins, without scripts."""

from decimal import Decimal

import pytest
from inbox.plain import Plain
from rows.spending import QUOTE, begin, limit, spend_10, spent
from rows.stage import Stage

from models.database.transactions import transaction
from models.workspace.provider_key import ProviderKey
from models.workspace.spend_limit import SpendLimit

_OF_MANY_AGENTS = """
    INSERT INTO daily_usage
    SELECT current_setting('assent.workspace'), (assent_now() AT TIME ZONE 'UTC')::date - 3, 'agent_' || n, '', 'anthropic', 'm',
        1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0.01, 0
    FROM generate_series(1, 510) n
"""


def test_usage_and_limits_are_shown(plain: Plain, stage: Stage) -> None:
    stage.quote = QUOTE
    session = spend_10(stage)
    limit(stage, "10")
    limit(stage, "500", ("agent", stage.read(session).agent_id), "weekly")
    plain.open("/inbox/usage")
    assert "reached" in plain.rows[0]
    assert "$10.00 spent this month of $10.00" in plain.rows[0]
    assert "$10.00 spent this week of $500.00" in plain.rows[1]
    assert "$10.00" in plain.page.one("[role=region] tbody")
    with transaction(stage.workspace_id) as db:
        db.write(_OF_MANY_AGENTS)
    plain.open("/inbox/usage")
    assert "$10.00" in plain.page.one("[role=region] tbody")
    assert "The oldest lines are left out" in plain.page.one("main")


def limits(stage: Stage) -> list[tuple[str, str, Decimal | None]]:
    """The limits of the workspace."""
    with transaction(stage.workspace_id) as db:
        return [(row.scope_type, row.period, row.amount) for row in db.find(SpendLimit, "ORDER BY id")]


def test_a_limit_is_set_changed_and_deleted(plain: Plain, stage: Stage) -> None:
    """The form names a fault and keeps its values."""
    session = stage.session()
    plain.open("/inbox/usage")
    plain.follow("New limit")
    plain.fill("Limit of", f"agent {stage.read(session).agent_id}")
    plain.fill("Period", "weekly")
    plain.fill("US dollars", "12,50")
    plain.press("Set the limit")
    assert "Amount: must be US dollars with at most two decimals" in plain.page.one("[role=alert]")
    assert plain.page.field("Period").value == "weekly"
    plain.fill("US dollars", "12.50")
    plain.press("Set the limit")
    assert ("$0.00 spent this week of $12.50") in plain.rows[0]
    assert limits(stage) == [("agent", "weekly", Decimal("12.5"))]
    plain.fill("US dollars each week", "7")
    plain.press("Change the limit")
    assert limits(stage) == [("agent", "weekly", Decimal(7))]
    plain.press("Delete")
    assert "There is no spend limit." in plain.page.one("main")
    assert limits(stage) == []


@pytest.mark.parametrize("cap", ["budget", "limit"])
def test_a_cap_is_raised_from_the_list(plain: Plain, stage: Stage, cap: str) -> None:
    stage.quote = QUOTE
    if cap == "budget":
        session = spent(stage)
    else:
        limit(stage, "0.5")
        session = begin(stage)
        assert stage.claim(session) is None
    plain.open()
    assert ("from $10.00 to $20.00" if cap == "budget" else "$11.00 more?") in plain.rows[0]
    plain.open(plain.rows[0].all("a")[0].get("href"))
    plain.press("Raise the budget" if cap == "budget" else "Let it spend more")
    plain.open()
    assert "Nothing waits." in plain.page.one("main")
    row = stage.read(session)
    assert (row.status, row.max_list_cost, row.spend_limits_from) == ("running", *((20, None) if cap == "budget" else (None, 11)))


def test_a_provider_key_is_stored_and_deleted(plain: Plain, stage: Stage) -> None:
    plain.open("/inbox/provider-keys")
    plain.follow("New key")
    plain.fill("Provider", "anthropic")
    plain.fill("Key", "sk-secret-0123456789-wXyZ")
    plain.press("Store the key")
    assert ("…wXyZ") in plain.rows[0]
    assert "0123456789" not in plain.response.text
    plain.press("Delete for good")
    assert "This workspace has no key of its own." in plain.page.one("main")
    with transaction(stage.workspace_id) as db:
        assert db.find(ProviderKey) == []


def test_a_question_at_a_limit_is_decided_on_its_card(plain: Plain, stage: Stage) -> None:
    stage.quote = QUOTE
    limit(stage, "0.5")
    session = begin(stage)
    assert stage.claim(session) is None
    [approval] = stage.approvals(session)
    plain.open(f"/inbox/approvals/{approval.id}")
    assert "Let this session spend $11.00 more?" in plain.page.one("main")
    plain.press("Let it spend more")
    assert (stage.read(session).status, stage.read(session).spend_limits_from) == ("running", Decimal(11))
