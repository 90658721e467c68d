"""The cost of a request to a model: an estimate before the request is sent, and the provider's report afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import takewhile
from typing import Any

from models.flow.spend.pricing import price_of
from models.pure.folding import tokens_of
from models.pure.json.codec import encode
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import Usage, estimated_tokens
from models.session.locked import Locked
from models.settings import settings
from models.settings.providers import registry
from workers.providers import Consumption
from workers.providers.choosing import Candidate, ServedReply

CACHED_FOR = timedelta(minutes=5)
"""The shortest life of a prompt cache. Within this time, the next request probably reads the previous one from the cache."""


def quote_for(
    locked: Locked, agent: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], order: Sequence[Candidate]
) -> Charge | None:
    """Return the most that the next request may cost: its input and the longest reply, at the most expensive candidate of `order`.

    The input is estimated as the previous request's size, which the provider counted, and the size of the messages since then.
    None without candidates.
    """
    thread = locked.thread
    previous_tokens = thread.context_tokens if any(message["role"] == "assistant" for message in messages) else 0
    added: list[Any] = list(takewhile(lambda message: message["role"] != "assistant", reversed(messages)))
    if not previous_tokens:
        added = [messages, agent.get("system"), agent.get("tools")]
    is_cached = thread.context_at is not None and locked.now - thread.context_at < CACHED_FOR
    added_tokens = tokens_of(added)
    usage = Usage(
        output_tokens=settings().max_tokens,
        cache_read_input_tokens=previous_tokens if is_cached else 0,
        cache_creation_input_tokens=added_tokens if is_cached else previous_tokens + added_tokens,
    )
    charges = [_charge(candidate.place, usage, locked.now, estimated=True) for candidate in order]
    return max(charges, key=lambda charge: charge.cost or Decimal(-1), default=None)


def charges_of_reply(quote: Charge, served_reply: ServedReply, at: datetime) -> list[Charge]:
    """Return the charges of an attempt with a reply. `quote` is the attempt's estimate, `at` its start."""
    reply, place = served_reply.reply, (served_reply.served.provider, served_reply.served.model)
    if reply.usage.context_tokens or reply.usage.output_tokens:
        charge = _charge(place, reply.usage, at, reported_model=reply.model)
    else:
        usage = replace(quote.usage, output_tokens=estimated_tokens(len(encode(reply.content))))
        charge = _charge(place, usage, at, reported_model=reply.model, estimated=True)
    return [*charges_without_reply(quote, served_reply.consumptions, at), charge]


def charges_without_reply(quote: Charge, requests: Sequence[Consumption], at: datetime) -> list[Charge]:
    """Return the charges of requests without a whole reply."""
    return [_charge(request.place, quote.for_early_end(request.usage).usage, at, estimated=True) for request in requests]


def _charge(place: tuple[str, str], usage: Usage, at: datetime, *, reported_model: str = "", estimated: bool = False) -> Charge:
    provider, model = place
    price = price_of(provider, model, at, context_tokens=usage.context_tokens, listed_as=reported_model)
    return Charge(provider, reported_model or model, price, usage, estimated)


def load() -> None:
    """Load the list of prices. Loading takes a second."""
    for entry in registry():
        price_of(entry.name, "-", datetime.now(UTC))
