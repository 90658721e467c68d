"""Prices are decimal. Public ones come from the list, and a model that it does not have has an unknown price."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from models.pure.pricing.charges import Charge, summed
from models.pure.pricing.money import spending
from models.pure.pricing.prices import Price, cents, exact, list_price
from models.pure.pricing.usage import Usage

AT = datetime(2026, 11, 1, tzinfo=UTC)
COUNT = st.integers(0, 2_000_000)
USAGES = st.builds(
    lambda fresh, out, read, short, long: Usage(fresh, out, read, short + long, long), COUNT, COUNT, COUNT, COUNT, COUNT
)
MODELS = [
    (provider.id, model.id)
    for provider in get_snapshot().providers
    if provider.id in {"anthropic", "openai", "google", "mistral", "x-ai"}
    for model in provider.models
]
PRICE = Price.configured({"input": "0.1", "output": "0.3", "cache_read": "0.01", "request": 2})


@settings(max_examples=200, deadline=None)
@given(named=st.sampled_from(MODELS), usage=USAGES)
def test_a_list_cost_equals_the_cost_by_genai_prices(named: tuple[str, str], usage: Usage) -> None:
    provider, model = named
    price = list_price(provider, model, AT, context_tokens=usage.context_tokens)
    if price is None:
        return
    counts = genai_prices.Usage(
        input_tokens=usage.context_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_input_tokens,
        cache_write_tokens=usage.cache_creation_input_tokens,
        cache_write_5m_tokens=usage.cache_creation_5m_input_tokens,
        cache_write_1h_tokens=usage.cache_creation_1h_input_tokens,
    )
    theirs = genai_prices.calc_price(counts, model, provider_id=provider, genai_request_timestamp=AT)
    assert price.cost(usage) == theirs.total_price


@pytest.mark.parametrize(("provider", "model"), [("anthropic", "stand-in"), ("nobody", "gpt-5.2"), ("anthropic", ""), ("", "")])
def test_a_model_that_the_list_does_not_have_has_no_price(provider: str, model: str) -> None:
    assert list_price(provider, model, AT) is None


def test_a_provider_is_recognized_by_its_address() -> None:
    known = list_price("mine", "gpt-5.2", AT, url="https://api.openai.com/v1")
    assert known == list_price("openai", "gpt-5.2", AT)
    assert known
    assert list_price("mine", "gpt-5.2", AT, url="http://127.0.0.1:9000/v1") is None


@pytest.mark.parametrize(
    ("prices", "fault"),
    [
        ({"output": "1"}, "input: is missing"),
        ({"input": "1", "output": 0.5}, "output: must be a number"),
        ({"input": "nan", "output": "1"}, "input: must be a number"),
        ({"input": "-1", "output": "1"}, "input: must be a number"),
        ({"input": "1e9", "output": "1"}, "input: must be a number"),
        ({"input": "1", "output": True}, "output: must be a number"),
        ({"input": "1", "output": "1", "thinking": "1"}, "thinking: is not a price"),
    ],
)
def test_a_nonsensical_price_names_the_field(prices: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Price.configured(prices)


@given(usage=USAGES)
def test_a_stored_price_is_unchanged_and_cost_and_savings_add_up(usage: Usage) -> None:
    assert Price.of(PRICE.as_json) == PRICE
    cost = PRICE.cost(usage)
    assert cost is not None
    uncached = Usage(usage.context_tokens, usage.output_tokens)
    assert cost + PRICE.savings(usage) == PRICE.cost(uncached)


@given(usages=st.lists(USAGES, max_size=8))
def test_sums_do_not_depend_on_the_order_and_can_be_undone(usages: list[Usage]) -> None:
    charges = [Charge("p", "m", PRICE, usage) for usage in usages]
    sums: dict[str, Any] = {}
    for charge in charges:
        sums = summed(sums, charge)
    back: dict[str, Any] = {}
    for charge in reversed(charges):
        back = summed(back, charge)
    assert sums == back
    assert Decimal(sums.get("cost", "0")) == sum(charge.cost or 0 for charge in charges)
    for charge in charges:
        sums = summed(sums, charge, -1)
    assert sums == {}


def test_a_search_without_a_price_has_no_cost() -> None:
    assert PRICE.cost(Usage(web_search_requests=1)) is None
    assert spending(summed({}, Charge("p", "m", PRICE, Usage(5, web_search_requests=1))))["list_cost"] is None


@pytest.mark.parametrize(("dollars", "amount"), [("0.005", "1"), ("0.0049", "0"), ("12.345", "1235"), ("0", "0"), ("-0.005", "-1")])
def test_cents_are_rounded_half_up(dollars: str, amount: str) -> None:
    assert cents(Decimal(dollars)) == amount


def test_exact_amounts_have_no_exponent() -> None:
    assert [exact(Decimal(text)) for text in ("0E-9", "1E+3", "0.0100", "1E-12")] == ["0", "1000", "0.01", "0.000000000001"]
