"""Charges: what one attempt at a turn consumed, at which price, and sums of them.

A sum is exact. Where no price is known, its request is counted in `unpriced_requests` and adds nothing to `cost`. Where nobody
reported the usage, its request is counted in `estimated_requests` with an estimate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from models.pure.pricing.prices import Price, exact
from models.pure.pricing.usage import NOTHING, Usage


@dataclass(frozen=True)
class Charge:
    """One request to a model. `price` is None if it is unknown; `estimated` is true if the provider did not report the usage."""

    provider: str
    model: str
    price: Price | None
    usage: Usage
    estimated: bool = False

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Charge":
        """Return an estimated charge from its JSON."""
        price = Price.of(fields["price"]) if "price" in fields else None
        return cls(fields["provider"], fields["model"], price, Usage(**fields["usage"]), estimated=True)

    @property
    def as_json(self) -> dict[str, Any]:
        """The estimated charge as JSON, exact, without counts of 0. Statements sum up the two amounts, which `of` computes anew."""
        counts = {name: count for name, count in self.usage.counts.items() if count}
        fields = {"provider": self.provider, "model": self.model, "usage": counts}
        if self.price is None:
            return fields
        amounts = {"cost": exact(self.cost or Decimal(0)), "input_cost": exact(self.input_cost)}
        return fields | {"price": self.price.as_json} | amounts

    @property
    def cost(self) -> Decimal | None:
        """Its cost in US dollars, or None."""
        return self.price.cost(self.usage) if self.price else None

    @property
    def input_cost(self) -> Decimal:
        """The cost of its input, in US dollars; 0 without a price."""
        return (self.price.cost(replace(self.usage, output_tokens=0)) if self.price else None) or Decimal(0)

    @property
    def savings(self) -> Decimal | None:
        """How much the cache saved, in US dollars, or None. Negative if it cost more than it saved."""
        return self.price.savings(self.usage) if self.price else None

    def for_early_end(self, usage: Usage | None) -> "Charge":
        """Return the estimated charge of an attempt that ended early. `usage` is the part that was reported until then.

        Unreported counts come from this charge, which was made before the request: the input, or all counts if `usage` is None.
        """
        if usage is None:
            return replace(self, estimated=True)
        partial_usage = usage if usage.context_tokens else replace(self.usage, output_tokens=usage.output_tokens)
        return replace(self, usage=partial_usage, estimated=True)


NO_CHARGES: dict[str, Any] = {**NOTHING.counts, "requests": 0, "estimated_requests": 0, "unpriced_requests": 0}
NO_CHARGES |= {"cost": "0", "cache_savings": "0"}
"""The sums before the first charge. The amounts are US dollars, exact, as text."""


def summed(sums: Mapping[str, Any], charge: Charge, times: int = 1) -> dict[str, Any]:
    """Return sums with a charge added, or removed if `times` is -1. A sum of 0 is left out."""
    before, cost = {**NO_CHARGES, **sums}, charge.cost
    counts = {name: before[name] + times * count for name, count in charge.usage.counts.items()}
    amounts = {"cost": cost, "cache_savings": None if cost is None else charge.savings}
    after = {
        **counts,
        "requests": before["requests"] + times,
        "estimated_requests": before["estimated_requests"] + times * charge.estimated,
        "unpriced_requests": before["unpriced_requests"] + times * (cost is None),
        **{name: exact(Decimal(before[name]) + times * (amount or Decimal(0))) for name, amount in amounts.items()},
    }
    return {name: value for name, value in after.items() if value != NO_CHARGES[name]}
