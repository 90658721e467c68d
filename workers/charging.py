"""What a request to a model costs: an estimate before it is sent, and the provider's report after."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import takewhile
from typing import Any

from models.flow.pricing import price_of
from models.pure.charges import Charge
from models.pure.folding import tokens_of
from models.pure.json_codec import encode
from models.pure.usage import Usage, estimated_tokens
from models.session.session import Session
from models.settings import settings
from models.settings.providers import registry
from workers.providers import Spent
from workers.providers.choosing import Answer, Candidate

CACHED_FOR = timedelta(minutes=5)
"""The shortest life of a prompt cache: within it, the next request is expected to read the previous one from the cache."""


def quoted(
    session: Session, agent: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], order: Sequence[Candidate]
) -> Charge | None:
    """Return what the next request may consume: its whole input, and the longest reply, at the costliest of those who may answer.

    The input of a conversation is the size of its previous request, which the provider counted, with what has been added since.
    None if nobody can answer.
    """
    known = session.context_tokens if any(message["role"] == "assistant" for message in messages) else 0
    added: list[Any] = list(takewhile(lambda message: message["role"] != "assistant", reversed(messages)))
    if not known:
        added = [messages, agent.get("system"), agent.get("tools")]
    fresh = session.context_at is not None and session.now - session.context_at < CACHED_FOR
    more = tokens_of(added)
    usage = Usage(
        output_tokens=settings().max_tokens,
        cache_read_input_tokens=known if fresh else 0,
        cache_creation_input_tokens=more if fresh else known + more,
    )
    charges = [_priced(candidate.place, usage, session.now, estimated=True) for candidate in order]
    return max(charges, key=lambda charge: charge.cost or Decimal(-1), default=None)


def charged(quote: Charge, answer: Answer, at: datetime) -> list[Charge]:
    """Return what an attempt with a reply consumed. `at` is when it began, and `quote` was made for it."""
    reply, place = answer.reply, (answer.served.provider, answer.served.model)
    if reply.usage.context_tokens or reply.usage.output_tokens:
        charge = _priced(place, reply.usage, at, answered=reply.model)
    else:
        usage = replace(quote.usage, output_tokens=estimated_tokens(len(encode(reply.content))))
        charge = _priced(place, usage, at, answered=reply.model, estimated=True)
    return [*spent(quote, answer.spent, at), charge]


def spent(quote: Charge, requests: Sequence[Spent], at: datetime) -> list[Charge]:
    """Return what requests without a whole reply consumed."""
    return [_priced(request.place, quote.ended(request.usage).usage, at, estimated=True) for request in requests]


def _priced(place: tuple[str, str], usage: Usage, at: datetime, *, answered: str = "", estimated: bool = False) -> Charge:
    provider, model = place
    price = price_of(provider, model, at, context_tokens=usage.context_tokens, listed_as=answered)
    return Charge(provider, answered or model, price, usage, estimated)


def load() -> None:
    """Load the list of prices, which takes a second."""
    for entry in registry():
        price_of(entry.name, "-", datetime.now(UTC))
