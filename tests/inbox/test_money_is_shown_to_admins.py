"""The pages of usage, spend limits and provider keys, for admins, without scripts."""

from decimal import Decimal

import pytest
from inbox.visitor import Visitor
from playwright.sync_api import expect
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


def test_usage_and_limits_are_shown(plain: Visitor, stage: Stage) -> None:
    stage.quote = QUOTE
    session = spend_10(stage)
    limit(stage, "10")
    limit(stage, "500", ("agent", stage.read(session).agent_id), "weekly")
    plain.open("/inbox/usage")
    expect(plain.rows.nth(0)).to_contain_text("reached")
    expect(plain.rows.nth(0)).to_contain_text("$10.00 spent this month of $10.00")
    expect(plain.rows.nth(1)).to_contain_text("$10.00 spent this week of $500.00")
    usage = plain.page.get_by_role("region", name="Usage by day and agent").locator("tbody")
    expect(usage).to_contain_text("$10.00")
    with transaction(stage.workspace_id) as db:
        db.write(_OF_MANY_AGENTS)
    plain.open("/inbox/usage")
    expect(usage).to_contain_text("$10.00")
    expect(plain.page.get_by_text("The oldest lines are left out")).to_be_visible()


def limits(stage: Stage) -> list[tuple[str, str, Decimal | None]]:
    """The limits of the workspace."""
    with transaction(stage.workspace_id) as db:
        return [(row.scope_type, row.period, row.amount) for row in db.find(SpendLimit, "ORDER BY id")]


def test_a_limit_is_set_changed_and_deleted(plain: Visitor, stage: Stage) -> None:
    """The form names a fault and keeps its values."""
    session = stage.session()
    plain.open("/inbox/usage")
    plain.page.get_by_role("link", name="New limit").click()
    plain.page.get_by_label("Limit of").select_option(f"agent {stage.read(session).agent_id}")
    plain.page.get_by_label("Period").select_option("weekly")
    plain.page.get_by_label("US dollars").fill("12,50")
    plain.button("Set the limit").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("Amount: must be US dollars with at most two decimals")
    assert plain.page.get_by_label("Period").input_value() == "weekly"
    plain.page.get_by_label("US dollars").fill("12.50")
    plain.button("Set the limit").click()
    expect(plain.rows).to_contain_text("$0.00 spent this week of $12.50")
    assert limits(stage) == [("agent", "weekly", Decimal("12.5"))]
    plain.page.get_by_text("Change…").click()
    plain.page.get_by_label("US dollars each week").fill("7")
    plain.button("Change the limit").click()
    assert limits(stage) == [("agent", "weekly", Decimal(7))]
    plain.button("Delete").click()
    expect(plain.page.get_by_text("There is no spend limit.")).to_be_visible()
    assert limits(stage) == []


@pytest.mark.parametrize("cap", ["budget", "limit"])
def test_a_cap_is_raised_from_the_list(plain: Visitor, stage: Stage, cap: str) -> None:
    stage.quote = QUOTE
    if cap == "budget":
        session = spent(stage)
    else:
        limit(stage, "0.5")
        session = begin(stage)
        assert stage.claim(session) is None
    plain.open()
    expect(plain.rows).to_contain_text("from $10.00 to $20.00" if cap == "budget" else "$11.00 more?")
    plain.rows.get_by_role("link").first.click()
    plain.button("Raise the budget" if cap == "budget" else "Let it spend more").click()
    plain.open()
    expect(plain.page.get_by_text("Nothing waits.", exact=True)).to_be_visible()
    row = stage.read(session)
    assert (row.status, row.max_list_cost, row.spend_limits_from) == ("running", *((20, None) if cap == "budget" else (None, 11)))


def test_a_provider_key_is_stored_and_deleted(plain: Visitor, stage: Stage) -> None:
    plain.open("/inbox/provider-keys")
    plain.page.get_by_role("link", name="New key").click()
    plain.page.get_by_label("Provider").select_option("anthropic")
    plain.page.get_by_label("Key", exact=True).fill("sk-secret-0123456789-wXyZ")
    plain.button("Store the key").click()
    expect(plain.rows).to_contain_text("…wXyZ")
    assert "0123456789" not in plain.page.content()
    plain.button("Delete for good").click()
    expect(plain.page.get_by_text("This workspace has no key of its own.")).to_be_visible()
    with transaction(stage.workspace_id) as db:
        assert db.find(ProviderKey) == []


def test_a_question_at_a_limit_is_decided_on_its_card(plain: Visitor, stage: Stage) -> None:
    stage.quote = QUOTE
    limit(stage, "0.5")
    session = begin(stage)
    assert stage.claim(session) is None
    [approval] = stage.approvals(session)
    plain.open(f"/inbox/approvals/{approval.id}")
    expect(plain.page.get_by_role("main")).to_contain_text("Let this session spend $11.00 more?")
    plain.button("Let it spend more").click()
    assert (stage.read(session).status, stage.read(session).spend_limits_from) == ("running", Decimal(11))
