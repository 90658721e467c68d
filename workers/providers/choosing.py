"""Chooses the model that replies: the agent's model, else its alternatives in order.

An alternative is tried when a provider is overloaded, limits the rate, takes too long or no longer has the model, and only before
the first visible byte. A circuit breaker for each provider and model, kept in this process, spares a model that failed several
times in a row: its alternatives are tried first. An alternative whose window is too small for the request is not tried.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from models.database.encryption import Undecryptable
from models.flow.spend.pricing import window_of
from models.operate.metrics import contents, spans
from models.operate.metrics.durations import MODEL_CALLS, measure
from models.pure.folding import limit, longest_reply
from models.pure.pricing.usage import NOTHING
from models.session.turn.row import Served, Skip, Switch
from models.settings import settings
from models.settings.providers import ProviderEntry, excluded, serving
from models.workspace.provider_key import ProviderKey
from workers.providers import Consumption, ModelError, ModelReply, ModelRequest, Unwanted, provider_for


@dataclass(frozen=True)
class Candidate:
    """A model at the provider that serves it."""

    model: str
    entry: ProviderEntry

    @property
    def place(self) -> tuple[str, str]:
        """The provider's and the model's name."""
        return self.entry.name, self.model


@dataclass(frozen=True)
class ServedReply:
    """A reply, and the provider and model that gave it."""

    reply: ModelReply
    served: Served
    consumptions: tuple[Consumption, ...] = ()
    """Consumption of earlier requests without a whole reply."""


class NoReply(Exception):
    """No candidate gave a reply. `served`: the candidate that had begun one, if any. `consumptions`: of the requests."""

    def __init__(self, error: ModelError, served: Served | None, consumptions: Sequence[Consumption] = ()) -> None:
        super().__init__(str(error))
        self.error, self.served, self.consumptions = error, served, tuple(consumptions)


def candidates(
    model: Mapping[str, Any], defaults: Mapping[str, Any] | None, first_place: tuple[str, str] | None
) -> list[Candidate]:
    """Return the candidates in order: an agent's `model` and its fallbacks, else the workspace's, without excluded providers.

    `first_place`: the provider and model that began to reply in this turn. They are then the only candidate. Raises ModelError if
    no provider serves any of the models.
    """
    defaults = defaults or {}
    excluded_names = excluded(model, defaults)
    fallbacks = model.get("fallbacks")
    names = [model["id"], *((defaults.get("fallbacks") or []) if fallbacks is None else fallbacks)]
    entries = {name: serving(name, excluded_names) for name in dict.fromkeys(names)}
    order = [Candidate(name, entry) for name, entry in entries.items() if entry]
    if not order:
        exception = f" but {', '.join(sorted(excluded_names))}, which is excluded" if excluded_names else ""
        raise ModelError("invalid", f"No provider serves the model {model['id']}{exception}: see ASSENT_PROVIDERS")
    places = [candidate.place for candidate in order]
    return [order[places.index(first_place)]] if first_place in places else order


def ask(
    order: list[Candidate], request: ModelRequest, keys: Mapping[str, ProviderKey], on_text: Callable[[int, str], None]
) -> ServedReply:
    """Return the reply of the first candidate that gives one. `keys` are the workspace's own, by provider. Raises NoReply."""
    errors: list[ModelError] = []
    consumptions: list[Consumption] = []
    able = [order[0], *(candidate for candidate in order[1:] if not _too_small(candidate, request))]
    candidates_to_try = [candidate for candidate in able if not breaker.is_open(candidate, keys)] or able
    route = _Route(order, candidates_to_try, request)
    switches: list[Switch] = []
    if candidates_to_try[0] is not order[0]:
        switches.append(route.switch(order[0], candidates_to_try[0], "circuit_open", _FAILED_OFTEN))
    for candidate, following in zip(candidates_to_try, [*candidates_to_try[1:], None], strict=True):
        hearing = _Hearing(on_text)
        served = Served(*candidate.place, tuple(switches))
        try:
            reply = _ask(candidate, request, keys, hearing.on_text)
        except Unwanted as end:
            end.consumptions = (*consumptions, Consumption(candidate.place, end.usage or NOTHING))
            raise
        except ModelError as error:
            breaker.failed(candidate, keys, error)
            consumptions += [Consumption(candidate.place, error.usage)] if error.usage is not None else []
            if hearing.began:
                raise NoReply(error, served, consumptions) from error
            errors.append(error)
            if not errors[0].falls_back or following is None:
                break
            switches.append(route.switch(candidate, following, error.kind, str(error)))
        else:
            breaker.succeeded(candidate, keys)
            return ServedReply(reply, served, tuple(consumptions))
    raise NoReply(_summary(errors, route.skips_between(order[0], None)), None, consumptions)


_FAILED_OFTEN = "It failed several times in a row."


def _too_small(candidate: Candidate, request: ModelRequest) -> str | None:
    """Return why the candidate's window is too small for the request; None if it is not."""
    window = window_of(candidate.entry, candidate.model, datetime.now(UTC))
    if request.tokens <= limit(window):
        return None
    return f"The request has about {request.tokens} tokens, and with {window} tokens the model's window is too small for it."


@dataclass(frozen=True)
class _Route:
    """The candidates in order, and those that are tried."""

    order: list[Candidate]
    candidates_to_try: list[Candidate]
    request: ModelRequest

    def skips_between(self, source: Candidate, target: Candidate | None) -> tuple[Skip, ...]:
        """Return the untried candidates between two others, each with the reason. A `target` of None is the end."""
        between = self.order[self.order.index(source) + 1 : self.order.index(target) if target else None]
        return tuple(
            Skip(candidate.place, _too_small(candidate, self.request) or _FAILED_OFTEN)
            for candidate in between
            if candidate not in self.candidates_to_try
        )

    def switch(self, source: Candidate, target: Candidate, reason: str, message: str) -> Switch:
        """Return the step from one candidate to the next that is tried."""
        return Switch(source.place, target.place, reason, message, self.skips_between(source, target))


def _ask(
    candidate: Candidate, request: ModelRequest, keys: Mapping[str, ProviderKey], on_text: Callable[[int, str], None]
) -> ModelReply:
    entry = candidate.entry
    window = window_of(entry, candidate.model, datetime.now(UTC))
    most = min(entry.limits.max_tokens or request.max_tokens, longest_reply(window))
    effort = request.effort if entry.abilities.effort else None
    own_request = replace(request, model=candidate.model, max_tokens=min(most, request.max_tokens), effort=effort)
    provider = provider_for(entry, key_of(entry, keys))
    about = {"gen_ai.provider.name": entry.name, "gen_ai.request.model": candidate.model}
    with (
        measure(MODEL_CALLS, "chat", *candidate.place, "_OTHER") as watch,
        spans.record("chat", candidate.model, about, is_client=True) as span,
    ):
        span.attributes |= contents.of_messages("gen_ai.input.messages", own_request.messages)
        try:
            reply = provider.ask(own_request, on_text)
        except ModelError as error:
            watch.labels, span.error = ("chat", *candidate.place, error.kind), error.kind
            raise
        watch.labels = ("chat", *candidate.place, "")
        span.attributes |= {
            "gen_ai.request.max_tokens": own_request.max_tokens,
            "gen_ai.response.model": reply.model or candidate.model,
            "gen_ai.response.finish_reasons": [str(reply.stop_reason)],
            "gen_ai.usage.input_tokens": reply.usage.context_tokens,
            "gen_ai.usage.output_tokens": reply.usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": reply.usage.cache_read_input_tokens,
            **contents.of_messages("gen_ai.output.messages", [{"role": "assistant", "content": reply.content}]),
        }
    return reply


def key_of(entry: ProviderEntry, keys: Mapping[str, ProviderKey]) -> str | None:
    """Return the key for a provider: the workspace's own, else the operator's. Raises ModelError if it cannot be decrypted."""
    row = keys.get(entry.name)
    if row is None:
        return os.environ.get(entry.api_key_env or "") or None
    try:
        return row.decrypted()
    except Undecryptable as error:
        raise ModelError("invalid", f"The workspace's key for provider {entry.name} cannot be used: {error}") from None


def _summary(errors: list[ModelError], skips: Sequence[Skip]) -> ModelError:
    """Return one error for all candidates: a transient error if there is one, so that the turn is tried again."""
    main_error = next((error for error in errors if error.retryable), errors[0])
    others = "".join(f" Then: {error}" for error in errors if error is not main_error)
    if errors[0].falls_back:
        others += "".join(f" Not tried: {'/'.join(skip.place)}: {skip.message}" for skip in skips)
    return ModelError(main_error.kind, f"{main_error}{others}"[:2000], main_error.retry_after, code=main_error.code)


class _Hearing:
    """Passes on text. `began` is True once text has come."""

    def __init__(self, on_text: Callable[[int, str], None]) -> None:
        self._on_text = on_text
        self.began = False

    def on_text(self, index: int, text: str) -> None:
        self.began = True
        self._on_text(index, text)


class Breaker:
    """Counts failures in a row of each provider and model, separately for each workspace's own key."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str, str], int] = {}
        self._open_until: dict[tuple[str, str, str], float] = {}

    def is_open(self, candidate: Candidate, keys: Mapping[str, ProviderKey]) -> bool:
        """True if the candidate failed too often and its pause is not over."""
        return time.monotonic() < self._open_until.get(_account(candidate, keys), 0)

    def failed(self, candidate: Candidate, keys: Mapping[str, ProviderKey], error: ModelError) -> None:
        """Count a failure for which alternatives are tried. After `breaker_failures` such failures the circuit opens."""
        if not error.falls_back:
            return
        account = _account(candidate, keys)
        self._failures[account] = self._failures.get(account, 0) + 1
        if self._failures[account] >= settings().breaker_failures:
            self._open_until[account] = time.monotonic() + max(settings().breaker_seconds, min(error.retry_after or 0, 300))

    def succeeded(self, candidate: Candidate, keys: Mapping[str, ProviderKey]) -> None:
        """Close the circuit."""
        account = _account(candidate, keys)
        self._failures.pop(account, None)
        self._open_until.pop(account, None)


def _account(candidate: Candidate, keys: Mapping[str, ProviderKey]) -> tuple[str, str, str]:
    row = keys.get(candidate.entry.name)
    return (*candidate.place, row.id if row else "")


breaker = Breaker()
