"""Claude, through the `anthropic` package: always streamed, with cached prompts, without retries.

Events are read raw and parsed as plain JSON. Measured per piece of text on a gevent worker with 50 streams: 229 µs of CPU
with `messages.stream()`, 149 with `create(stream=True)`, 127 like this, 73 with the pauses below.
"""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import lru_cache
from typing import Any, TypeVar

import anthropic
import anthropic.resources.beta  # loads for a second, which would else stop running streams
import anthropic.resources.messages
import httpx2  # the SDK's transport, whose errors in mid-stream the SDK does not wrap

from models.settings import settings
from models.settings.providers import ProviderEntry
from workers.providers import ModelError, ModelReply, ModelRequest, metered
from workers.providers.anthropic_errors import error_event, status_error
from workers.providers.anthropic_reply import Draft
from workers.providers.anthropic_request import has_own_summary, params
from workers.providers.errors import check_stream, connection_error
from workers.providers.limits import client_options, timeout
from workers.providers.neutral import summarized

Event = TypeVar("Event")

WAITED_SECONDS = 0.005
"""An event that took longer was not in the buffer yet."""
_CLIENTS = 100
_without_compaction: set[tuple[str, str]] = set()
"""Providers and models that refused `compaction` in this process, but not the same request without it."""


class AnthropicProvider:
    """A provider with Anthropic's Messages API. The process has one client for each entry and key."""

    def __init__(self, entry: ProviderEntry, key: str | None) -> None:
        self.entry, self.key = entry, key

    def ask(self, request: ModelRequest, on_text: Callable[[int, str], None]) -> ModelReply:
        """As in `Provider`. A request that the API refuses with `compaction` is sent once more with summaries as ordinary texts."""
        if not request.folds and not has_own_summary(request, self.entry.name):
            return self._ask(request, on_text, compacts=False)
        place = self.entry.name, request.model
        try:
            return self._ask(request, on_text, compacts=place not in _without_compaction)
        except ModelError as error:
            if error.kind != "unacceptable" or place in _without_compaction:
                raise
            reply = self._ask(request, on_text, compacts=False)
            if not has_own_summary(request, self.entry.name):  # else the fault may be one session's block
                _without_compaction.add(place)
            return reply

    def _ask(self, request: ModelRequest, on_text: Callable[[int, str], None], *, compacts: bool) -> ModelReply:
        draft = Draft(self.entry.name)
        with metered(draft), closing(self._events(request, compacts=compacts)) as events:
            for event in events:
                text = draft.add(event)
                if text:
                    on_text(*text)
            return summarized(draft.reply()) if request.folds else draft.reply()

    def models(self) -> list[str]:
        try:
            return [model.id for model in self._client().models.list(limit=1000)]
        except anthropic.APIStatusError as error:
            raise status_error(error, "", self.key) from error
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            raise connection_error(error, self.entry.name) from error

    def _client(self) -> anthropic.Anthropic:
        """Return the client. Raises ModelError without a key, because the SDK would look for other credentials here."""
        if not self.key:
            missing = self.entry.api_key_env or "api_key_env"
            raise ModelError("invalid", f"{missing} is not set: provider {self.entry.name} needs a key")
        return _client(self.entry, self.key)

    def _events(self, request: ModelRequest, *, compacts: bool) -> Generator[dict[str, Any], None, None]:
        """Yield the reply's events as they arrive, without pings. Raises ModelError."""
        try:
            parameters, client = params(request, self.entry.name, compacts=compacts), self._client()
            messages = client.beta.messages if "betas" in parameters else client.messages
            with messages.with_streaming_response.create(stream=True, **parameters) as response:
                check_stream(response.headers, self.entry.name)
                for sse in _gathered(anthropic.Stream.raw_events(response.http_response)):
                    if sse.event == "error":
                        raise error_event(json.loads(sse.data), self.key)
                    if sse.data and sse.event != "ping":
                        yield json.loads(sse.data)
        except anthropic.APIStatusError as error:
            raise status_error(error, request.model, self.key) from error
        except (anthropic.APIConnectionError, httpx2.HTTPError) as error:
            raise connection_error(error, self.entry.name) from error
        except ValueError as error:
            raise ModelError("failed", "The model's stream was not JSON") from error


@lru_cache(_CLIENTS)
def _client(entry: ProviderEntry, key: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key=key,
        base_url=entry.base_url,
        default_headers=entry.headers,
        timeout=timeout(entry),
        http_client=anthropic.DefaultHttpxClient(**client_options(entry)),
        max_retries=0,
        open_telemetry=False,
    )


def _gathered(events: Iterator[Event]) -> Iterator[Event]:
    """Yield the events. After an event that was not in the buffer, a pause of `delta_seconds` lets the next events gather.

    Most of a stream's cost is to wake up for each token. Readers receive text only every `delta_seconds` anyway.
    """
    requested = time.monotonic()
    for event in events:
        waited = time.monotonic() - requested > WAITED_SECONDS
        yield event
        if waited:
            time.sleep(settings().delta_seconds)
        requested = time.monotonic()
