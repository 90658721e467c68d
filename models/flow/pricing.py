"""The price of a model of a provider: the operator's where the operator named one, else the public list's."""

from datetime import datetime

from models.pure.prices import Price, list_price


def price_of(provider: str, model: str, at: datetime, *, context_tokens: int = 0) -> Price | None:
    """Return the price that holds at a time for a request with so many tokens of input. None: unknown."""
    return list_price(provider, model, at, context_tokens=context_tokens)
