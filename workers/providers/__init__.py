"""The seam between a turn and whoever serves the model: one question, one streamed reply, one kind of error."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ErrorKind = Literal["overloaded", "rate_limited", "failed", "billing", "invalid", "unacceptable"]


@dataclass(frozen=True)
class ModelRequest:
    """What the model is asked. Messages and tools are params of the Messages API; they are passed on, never changed."""

    model: str
    system: str | None
    messages: list[dict[str, Any]]
    """Ends with a user message; every call has its result in the message after it."""
    tools: list[dict[str, Any]]
    """`name`, `description`, `input_schema` each."""
    max_tokens: int
    """Of the reply."""
    parallel: bool = True
    """Whether a reply may hold more than one call."""
    long_wait: bool = False
    """Whether people may be asked before the next turn: the prompt cache is then paid to live 1 h, else 5 min."""


@dataclass(frozen=True)
class Usage:
    """Tokens. The three kinds of input do not overlap: their sum is what the model read."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


@dataclass(frozen=True)
class Reply:
    """A whole reply. Blocks that the API would refuse in a history, or that were cut, are already left out."""

    content: list[dict[str, Any]]
    """JSON-able blocks, as the history takes them back. May be empty, after a refusal or a cut."""
    stop_reason: str
    stop_details: dict[str, Any] | None = None
    """Why it refused, if the model said."""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    """Who answered, which may be a dated name of the one that was asked."""


class ModelError(Exception):
    """No reply. The message is safe to show: no keys, no prompts. `retry_after` in seconds, where the server said so.

    overloaded, rate_limited, failed: it may pass, so the turn is tried again. `failed` is also every cut or garbled stream.
    billing, invalid: it will not pass by itself.
    unacceptable: the fault is in what was sent, so that sending it again with more behind it would fail as well.
    """

    def __init__(self, kind: ErrorKind, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        return self.kind in ("overloaded", "rate_limited", "failed")


class Provider(Protocol):
    """Who serves a model."""

    def ask(self, request: ModelRequest, on_text: Callable[[int, str], None]) -> Reply:
        """Asks once, streaming; nothing is retried here. Raises `ModelError`.

        `on_text(index, text)` gets each piece of text while it is written; `index` counts the text blocks of the reply
        from 0. Whatever it raises comes out of `ask` as it is, after the stream is closed.
        """
        ...


def provider_for(model: str) -> Provider:  # noqa: ARG001 (every model is Anthropic's today)
    """The provider that serves `model`. The first call in a process takes a second: it loads the SDK."""
    from workers.providers.anthropic import AnthropicProvider

    return AnthropicProvider()
