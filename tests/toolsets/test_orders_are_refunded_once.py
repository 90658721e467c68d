"""The example toolset on a real database: it finds orders, and one call refunds once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from assent import ToolError
from models.pure.masking import mask
from models.pure.policy import CompiledRules, policy_of
from workers.tools.python import running

REFUND = {"order_id": "1001", "amount_cents": 500, "reason": "broken"}


def refunded(shop):
    return shop.rows("SELECT call_id, order_id, amount_cents FROM shop.refunds ORDER BY made_at")


def test_orders_are_found_by_customer_and_status(shop):
    assert [order["id"] for order in shop.result("find_orders")] == ["1003", "1002", "1001"]
    assert [order["id"] for order in shop.result("find_orders", customer="LOVELACE")] == ["1001"]
    assert [order["id"] for order in shop.result("find_orders", status="shipped", limit=1)] == ["1003"]
    assert shop.result("find_orders", customer="' OR 1=1 --") == []


def test_an_order_is_shown_with_its_refunds(shop):
    shop.call("refund", "sevt_1", **REFUND)
    order = shop.result("get_order", order_id="1001")
    assert (order["total_cents"], order["status"]) == (2499, "shipped")
    assert [(refund["amount_cents"], refund["reason"]) for refund in order["refunds"]] == [(500, "broken")]


def test_a_second_run_of_one_call_refunds_nothing_more_and_says_the_same(shop):
    first = shop.call("refund", "sevt_1", **REFUND)
    assert shop.call("refund", "sevt_1", **REFUND) == first
    assert refunded(shop) == [("sevt_1", "1001", 500)]


def test_runs_of_one_call_at_the_same_time_refund_once(shop):
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: shop.result("refund", "sevt_1", **REFUND), range(4)))
    assert all(result == results[0] for result in results)
    assert refunded(shop) == [("sevt_1", "1001", 500)]


def test_another_call_is_another_refund_until_nothing_is_left(shop):
    shop.call("refund", "sevt_1", **REFUND)
    with pytest.raises(ToolError, match="only 1999 cents of order 1001 are left to refund"):
        shop.call("refund", "sevt_2", **{**REFUND, "amount_cents": 2000})
    shop.call("refund", "sevt_2", **{**REFUND, "amount_cents": 1999})
    assert [row[2] for row in refunded(shop)] == [500, 1999]


def test_calls_at_the_same_time_refund_no_more_than_was_paid(shop):
    def one(number):
        try:
            return shop.call("refund", f"sevt_{number}", **{**REFUND, "amount_cents": 1000})
        except ToolError:
            return None

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    assert sum(row[2] for row in refunded(shop)) == 2000


def test_an_unknown_order_is_an_error(shop):
    with pytest.raises(ToolError, match="there is no order '7'; find_orders lists"):
        shop.call("refund", **{**REFUND, "order_id": "7"})


def test_a_letter_that_is_sent_twice_comes_twice(shop):
    for _ in range(2):
        shop.call("send_letter", order_id="1002", text="Sorry.")
    assert shop.rows("SELECT order_id, text FROM shop.letters") == [("1002", "Sorry.")] * 2
    assert shop.entries["send_letter"]["idempotent"] is False


@pytest.mark.parametrize(("cents", "effect"), [(1, "allow"), (1000, "allow"), (1001, "ask"), (50_000, "ask"), (50_001, "deny")])
def test_small_refunds_are_allowed_and_large_ones_denied(entries, cents, effect):
    policy = policy_of(entries["refund"]["policy"], tool="refund")
    assert CompiledRules(policy.rules, policy.default, "").judge("refund", {**REFUND, "amount_cents": cents}).effect == effect


def test_only_find_orders_is_cached(entries):
    assert {name: (entry["effect"], bool(entry["cache"])) for name, entry in entries.items()} == {
        "find_orders": ("read", True),
        "get_order": ("read", False),
        "refund": ("write", False),
        "send_letter": ("write", False),
    }


def test_the_account_number_is_masked(entries):
    assert mask({**REFUND, "iban": "DE1"}, entries["refund"]["input_schema"]).arguments == {**REFUND, "iban": "«masked»"}


def test_an_unreachable_database_is_reported_by_the_exception_type_alone(shop, monkeypatch):
    monkeypatch.setenv("ORDERS_DATABASE_URL", "postgresql://localhost:1/none")
    running.end_idle()
    result = shop.call("get_order", order_id="1001")
    running.end_idle()
    assert (result.is_error, result.content[0]["text"]) == (True, "get_order: failed inside (OperationalError)")
