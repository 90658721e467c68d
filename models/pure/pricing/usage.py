"""Usage: what one request to a model consumed, as counts. `models.pure.pricing.prices` has its cost."""

from dataclasses import dataclass, fields

CHARACTERS_PER_TOKEN = 4
"""An estimate, for text whose tokens nobody counted."""


@dataclass(frozen=True)
class Usage:
    """Counts of one request. `input_tokens` are those that were neither read from the cache nor written to it.

    So the whole input is `input_tokens + cache_read_input_tokens + cache_creation_input_tokens`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    """Tokens written to the cache, for any lifetime."""
    cache_creation_1h_input_tokens: int = 0
    """Those of them that live for 1 h. The others live for 5 min."""
    web_search_requests: int = 0
    """Searches that the provider ran itself."""
    web_fetch_requests: int = 0
    """Pages that the provider fetched itself."""

    @property
    def cache_creation_5m_input_tokens(self) -> int:
        """Tokens written to the cache for 5 min."""
        return self.cache_creation_input_tokens - self.cache_creation_1h_input_tokens

    @property
    def context_tokens(self) -> int:
        """The whole input."""
        return self.input_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {name: getattr(self, name) for name in COUNTS}

    @property
    def span(self) -> dict[str, int]:
        """The tokens as the event `span.model_request_end` has them."""
        return {name: getattr(self, name) for name in SPAN}


COUNTS = tuple(field.name for field in fields(Usage))
SPAN = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""The counts of an event `span.model_request_end`, all of tokens."""
NOTHING = Usage()


def estimated_tokens(characters: int) -> int:
    """Return an estimate of the tokens in so many characters, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)
