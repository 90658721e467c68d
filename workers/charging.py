"""What a request to a model costs: an estimate before it is sent, and the provider's report after."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any

from models.flow.pricing import price_of
from models.pure.charges import Charge
from models.pure.json_codec import encode
from models.pure.usage import Usage, estimated_tokens
from models.session.session import Session
from models.settings import settings
from workers.providers import Reply

CACHED_FOR = timedelta(minutes=5)
"""The shortest life of a prompt cache: within it, the next request is expected to read the previous one from the cache."""
DEFAULT_PROVIDER = "anthropic"


def quoted(session: Session, agent: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Charge:
    """Return what the next request may consume: its whole input, and the longest reply.

    The input of a conversation is the size of its previous request, which the provider counted, with what has been added since.
    """
    known = session.context_tokens if any(message["role"] == "assistant" for message in messages) else 0
    added: list[Any] = list(takewhile(lambda message: message["role"] != "assistant", reversed(messages)))
    if not known:
        added = [messages, agent.get("system"), agent.get("tools")]
    fresh = session.context_at is not None and session.now - session.context_at < CACHED_FOR
    more = estimated_tokens(len(encode(added)))
    usage = Usage(
        input_tokens=0,
        output_tokens=settings().max_tokens,
        cache_read_input_tokens=known if fresh else 0,
        cache_creation_input_tokens=more if fresh else known + more,
    )
    return _priced(DEFAULT_PROVIDER, agent["model"]["id"], usage, session.now, estimated=True)


def charged(quote: Charge, reply: Reply, at: datetime) -> Charge:
    """Return what a complete reply consumed. `at` is when its attempt began, and `quote` was made for it."""
    usage, model = reply.usage, reply.model or quote.model
    if usage.context_tokens or usage.output_tokens:
        return _priced(quote.provider, model, usage, at)
    written = estimated_tokens(len(encode(reply.content)))
    return _priced(quote.provider, model, replace(quote.usage, output_tokens=written), at, estimated=True)


def _priced(provider: str, model: str, usage: Usage, at: datetime, *, estimated: bool = False) -> Charge:
    price = price_of(provider, model, at, context_tokens=usage.context_tokens)
    return Charge(provider, model, price, usage, estimated)


def load() -> None:
    """Load the list of prices, which takes a second."""
    price_of(DEFAULT_PROVIDER, "", datetime.now(UTC))
