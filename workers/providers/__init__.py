"""The interface between a turn and a model provider: one request, one streamed reply, one kind of error."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ErrorKind = Literal["overloaded", "rate_limited", "failed", "billing", "invalid", "unacceptable"]


@dataclass(frozen=True)
class ModelRequest:
    """A request to the model. Messages and tools are parameters of the Messages API, which the provider passes on unchanged."""

    model: str
    system: str | None
    messages: list[dict[str, Any]]
    """Ends with a user message; every call has its result in the message after it."""
    tools: list[dict[str, Any]]
    """Objects with `name`, `description` and `input_schema`."""
    max_tokens: int
    """The limit for the reply."""
    parallel: bool = True
    """True if a reply may hold more than one call."""
    long_wait: bool = False
    """True if people may be asked before the next turn: the prompt cache then lives 1 h instead of 5 min."""


@dataclass(frozen=True)
class Usage:
    """Counts of tokens. The three kinds of input do not overlap: their sum is the whole input."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


@dataclass(frozen=True)
class Reply:
    """A complete reply, without blocks that were cut or that the API would refuse in a history."""

    content: list[dict[str, Any]]
    """The blocks as JSON, in the shape of a history. Empty after some refusals and cuts."""
    stop_reason: str
    stop_details: dict[str, Any] | None = None
    """The reason of a refusal, if the model gave one."""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    """The name of the model that answered, often with a date."""


class ModelError(Exception):
    """There is no reply. The message holds no keys and no prompts. `retry_after`: seconds, if the server named a wait.

    overloaded, rate_limited, failed: transient, so the turn is repeated. `failed` includes every cut or garbled stream.
    billing, invalid: not transient.
    unacceptable: the request is at fault, so a request with more messages behind it would fail as well.
    """

    def __init__(self, kind: ErrorKind, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        return self.kind in ("overloaded", "rate_limited", "failed")


class Provider(Protocol):
    """A service for models."""

    def ask(self, request: ModelRequest, on_text: Callable[[int, str], None]) -> Reply:
        """Send one streaming request, without retries. Errors: ModelError.

        `on_text(index, text)` receives each piece of text as it arrives; `index` counts the reply's text blocks from 0.
        `ask` closes the stream and passes on any exception of `on_text`.
        """
        ...


def provider_for(model: str) -> Provider:  # noqa: ARG001 - Anthropic serves every model today
    """The provider of a model. The first call in a process loads the SDK, which takes a second."""
    from workers.providers.anthropic import AnthropicProvider

    return AnthropicProvider()
