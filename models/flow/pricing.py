"""The price of a model at a provider: the operator's where the registry names one, else the public list's."""

from datetime import datetime

from models.providers import named
from models.pure.prices import Price, list_price


def price_of(provider: str, model: str, at: datetime, *, context_tokens: int = 0, listed_as: str | None = None) -> Price | None:
    """Return the price that holds at a time for a request with so many tokens of input. None: unknown.

    `model` is the name by which the agent asked, `listed_as` the name of the model that answered, often with a date.
    """
    entry = named(provider)
    if entry is None:
        return None
    if (prices := entry.price(model)) is not None:
        return Price.configured(prices)
    if entry.kind == "anthropic":
        places: list[tuple[str, str | None]] = [("anthropic", None)]
    else:
        places = [("openai", None)] if entry.base_url is None else [(provider, entry.base_url)]
    [(place, url)] = places
    names = dict.fromkeys(name for name in (listed_as, model) if name)
    candidates = (list_price(place, name, at, context_tokens=context_tokens, url=url) for name in names)
    return next((price for price in candidates if price), None)
