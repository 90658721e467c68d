"""The price and the window of a model at a provider: the operator's if the registry has them, else the public list's."""

from datetime import datetime

from models.pure.pricing.prices import Price, list_price, list_window
from models.settings import settings
from models.settings.providers import ProviderEntry, provider_named


def price_of(provider: str, model: str, at: datetime, *, context_tokens: int = 0, listed_as: str | None = None) -> Price | None:
    """Return the price that holds at a time for a request with so many tokens of input. None: unknown.

    `model` is the name by which the agent asked, `listed_as` the name of the model that replied, often with a date.
    """
    entry = provider_named(provider)
    if entry is None:
        return None
    if (prices := entry.price(model)) is not None:
        return Price.configured(prices)
    place, url = _listed_at(entry)
    names = dict.fromkeys(name for name in (listed_as, model) if name)
    candidates = (list_price(place, name, at, context_tokens=context_tokens, url=url) for name in names)
    return next((price for price in candidates if price), None)


def window_of(entry: ProviderEntry, model: str, at: datetime) -> int:
    """Return the model's window: the most tokens of input and reply together."""
    place, url = _listed_at(entry)
    return entry.window(model) or list_window(place, model, at, url=url) or settings().context_window_tokens


def _listed_at(entry: ProviderEntry) -> tuple[str, str | None]:
    """Return the provider's name in the public list, and the address by which the list identifies other providers."""
    if entry.kind == "anthropic":
        return "anthropic", None
    return ("openai", None) if entry.base_url is None else (entry.name, entry.base_url)
