"""The interface between a turn and a model provider: one request, one streamed reply, one kind of error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from models.pure.pricing.usage import Usage
from models.settings.providers import Effort, ProviderEntry

ErrorKind = Literal["overloaded", "rate_limited", "timed_out", "failed", "gone", "billing", "invalid", "unacceptable", "too_long"]
RETRYABLE = frozenset({"overloaded", "rate_limited", "timed_out", "failed"})
FALLING_BACK = frozenset({"overloaded", "rate_limited", "timed_out", "gone"})


@dataclass(frozen=True)
class ModelRequest:
    """A request to the model, in the neutral form of `models.flow.run.history`; each provider translates it."""

    model: str
    system: str | None
    messages: list[dict[str, Any]]
    """End with a user message. The message after a call has the call's result."""
    tools: list[dict[str, Any]]
    """Objects with `name`, `description` and `input_schema`."""
    max_tokens: int
    """The limit for the reply."""
    parallel: bool = True
    """True if a reply may hold more than one call."""
    long_wait: bool = False
    """True if people may be asked before the next turn: the prompt cache then lives 1 h instead of 5 min."""
    effort: Effort | None = None
    """How hard the model works; None for the model's default."""
    folds: bool = False
    """True to ask for a summary of the messages: one block `summary`. The messages may then end with a reply."""
    tokens: int = 0
    """An estimate of the input. Alternatives with a smaller window are not tried."""


@dataclass(frozen=True)
class ModelReply:
    """A complete reply, without blocks that were cut or that the API would refuse in a history."""

    content: list[dict[str, Any]]
    """Neutral blocks, as in `models.session.turn.reply`. Empty after some refusals and cuts."""
    stop_reason: str
    """`end_turn`, `tool_use`, `max_tokens`, `refusal`, `model_context_window_exceeded`, or another of Anthropic's."""
    stop_details: dict[str, Any] | None = None
    """The reason of a refusal, if the model gave one."""
    usage: Usage = field(default_factory=Usage)
    """As the provider reported it. Without a report, all counts are 0, and the turn counts an estimate."""
    model: str = ""
    """The name of the model that replied, often with a date."""


class ModelError(Exception):
    """There is no reply. The message holds no keys and no prompts. `retry_after`: seconds, if the server named a wait.

    overloaded, rate_limited, timed_out, failed: transient, so the turn is repeated. `timed_out` includes a provider that cannot be
    reached, `failed` every cut or garbled stream.
    gone: the provider does not have the model.
    billing, invalid: not transient.
    unacceptable: the request is at fault, so a request with further messages would fail as well.
    too_long: the request is longer than the model reads, although the estimate fits.

    `usage`: None if the provider refused the request, which costs nothing. Else the known counts at the failure. If all counts are
    0, the turn counts an estimate.

    `code`: the status and the provider's type of the error, such as `400 invalid_request_error`, for operators; else the kind.
    """

    def __init__(
        self, kind: ErrorKind, message: str, retry_after: float | None = None, *, usage: Usage | None = None, code: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code or kind
        self.usage = usage
        self.kind = kind
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        return self.kind in RETRYABLE

    @property
    def falls_back(self) -> bool:
        """True if another model may reply in place of this one."""
        return self.kind in FALLING_BACK


@dataclass(frozen=True)
class Consumption:
    """Consumption of a request without a whole reply."""

    place: tuple[str, str]
    """The provider's and the model's name."""
    usage: Usage
    """Counts of 0 if nothing is known."""


class Unwanted(Exception):
    """Nobody waits for the reply any more: `on_text` raises this to end the stream. `usage` holds the counts known by then."""

    usage: Usage | None = None
    consumptions: tuple[Consumption, ...] = ()
    """The attempt's requests so far, this one included."""


class Unfinished(Protocol):
    """A reply while the model writes it."""

    @property
    def usage_so_far(self) -> Usage | None:
        """The reported input, and an estimate of the output. None before the model began to reply."""
        ...


@contextmanager
def metered(draft: Unfinished) -> Iterator[None]:
    """Set the `usage` of an error in the block to the draft's usage so far."""
    try:
        yield
    except (ModelError, Unwanted) as error:
        error.usage = draft.usage_so_far or error.usage
        raise


class Provider(Protocol):
    """A service for models."""

    def ask(self, request: ModelRequest, on_text: Callable[[int, str], None]) -> ModelReply:
        """Send one streaming request, without retries. Raises ModelError.

        `on_text(index, text)` receives each piece of text as it arrives; `index` counts the reply's text blocks from 0.
        `ask` closes the stream and passes on any exception of `on_text`. Errors carry the request's usage: see `metered`.
        """
        ...

    def models(self) -> list[str]:
        """Return the names of the models that the provider lists. Raises ModelError."""
        ...


def provider_for(entry: ProviderEntry, key: str | None) -> Provider:
    """Return the provider of a registry's entry. The first call of a kind in a process loads its SDK, which takes a second."""
    if entry.kind == "anthropic":
        from workers.providers.anthropic import AnthropicProvider

        return AnthropicProvider(entry, key)
    from workers.providers.openai import OpenAIProvider

    return OpenAIProvider(entry, key)
