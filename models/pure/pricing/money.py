"""Sums of charges, in the shapes of the wire."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from models.pure.pricing.charges import NO_CHARGES
from models.pure.pricing.prices import CURRENCY, cents
from models.pure.pricing.usage import SPAN


def monetary(dollars: Decimal) -> dict[str, str]:
    """Return an amount as the wire has it: whole cents, as text."""
    return {"amount": cents(dollars), "currency": CURRENCY}


def spending(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sums of `models.pure.pricing.charges.summed` as events and responses have them.

    `list_cost` and `cache_savings` are null if no request has a price. They leave out requests without one, which
    `unpriced_requests` counts.
    """
    have = {**NO_CHARGES, **sums}
    has_prices = have["unpriced_requests"] < have["requests"] or not any(have[name] for name in SPAN)
    short, long = have["cache_creation_input_tokens"], have["cache_creation_1h_input_tokens"]
    return {
        **{name: have[name] for name in SPAN},
        "cache_creation": {"ephemeral_5m_input_tokens": short - long, "ephemeral_1h_input_tokens": long},
        "server_tool_use": {name: have[name] for name in ("web_search_requests", "web_fetch_requests")},
        "list_cost": monetary(Decimal(have["cost"])) if has_prices else None,
        "cache_savings": monetary(Decimal(have["cache_savings"])) if has_prices else None,
        "exact_list_cost": str(have["cost"]) if has_prices else None,
        "exact_cache_savings": str(have["cache_savings"]) if has_prices else None,
        **{name: have[name] for name in ("requests", "estimated_requests", "unpriced_requests")},
    }
