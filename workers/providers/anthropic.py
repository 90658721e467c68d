"""Claude, through the `anthropic` package: always streamed, with cached prompts, without retries.

Events are read raw and parsed as plain JSON. Measured per piece of text on a gevent worker with 50 streams: 229 µs of CPU
with `messages.stream()`, 149 with `create(stream=True)`, 127 like this, 73 with the pauses below.
"""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import cache
from typing import Any, TypeVar

import anthropic
import anthropic.resources.messages  # loads for a second, which would else stop running streams
import httpx2  # the SDK's transport, whose errors in mid-stream the SDK does not wrap

from models.settings import settings
from workers.providers import ModelError, ModelRequest, Reply
from workers.providers.anthropic_errors import connection_error, error_event, status_error
from workers.providers.anthropic_reply import Draft

Event = TypeVar("Event")

CONNECT_SECONDS = 5
READ_SECONDS = 60
"""The longest wait between two chunks. The API sends pings while the model thinks."""
WAITED_SECONDS = 0.005
"""An event that took longer was not in the buffer."""


class AnthropicProvider:
    """The provider for Claude. The process has one client."""

    def ask(self, request: ModelRequest, on_text: Callable[[int, str], None]) -> Reply:
        draft = Draft()
        with closing(_events(request)) as events:
            for event in events:
                text = draft.add(event)
                if text:
                    on_text(*text)
        return draft.reply()


def _current_client() -> anthropic.Anthropic:
    """The process's client for the current settings. Errors: ModelError without a key."""
    key = settings().anthropic_api_key
    if key is None or not key.get_secret_value():
        # The SDK would look for other credentials on this machine.
        raise ModelError("invalid", "ANTHROPIC_API_KEY is not set")
    return _client(key.get_secret_value(), settings().anthropic_base_url)


@cache
def _client(key: str, base_url: str | None) -> anthropic.Anthropic:
    timeout = anthropic.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    return anthropic.Anthropic(api_key=key, base_url=base_url, timeout=timeout, max_retries=0, open_telemetry=False)


def _events(request: ModelRequest) -> Generator[dict[str, Any], None, None]:
    """The reply's events as they arrive, without pings. Errors: ModelError."""
    deadline = time.monotonic() + settings().model_timeout_seconds
    try:
        create = _current_client().messages.with_streaming_response.create
        with create(stream=True, **_params(request)) as response:
            for sse in _gathered(anthropic.Stream.raw_events(response.http_response)):
                if time.monotonic() > deadline:
                    raise ModelError("failed", f"The model took longer than {settings().model_timeout_seconds:g} s")
                if sse.event == "error":
                    raise error_event(json.loads(sse.data))
                if sse.data and sse.event != "ping":
                    yield json.loads(sse.data)
    except anthropic.APIStatusError as error:
        raise status_error(error) from error
    except (anthropic.APIConnectionError, httpx2.HTTPError) as error:
        raise connection_error(error) from error
    except ValueError as error:
        raise ModelError("failed", "The model's stream was not JSON") from error


def _gathered(events: Iterator[Event]) -> Iterator[Event]:
    """The same events. After an event that was not in the buffer, a pause of `delta_seconds` lets the next events gather.

    Most of a stream's cost is to wake up for each token, and readers receive text no more often than that.
    """
    requested = time.monotonic()
    for event in events:
        waited = time.monotonic() - requested > WAITED_SECONDS
        yield event
        if waited:
            time.sleep(settings().delta_seconds)
        requested = time.monotonic()


def _params(request: ModelRequest) -> dict[str, Any]:
    """The parameters for the Messages API, with cache breakpoints after the system prompt and tools, and at the end."""
    lifetime = {"type": "ephemeral", "ttl": "1h" if request.long_wait else "5m"}
    params: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": request.messages,
        "cache_control": lifetime,
    }
    tools = request.tools
    if request.system:
        params["system"] = [{"type": "text", "text": request.system, "cache_control": lifetime}]
    elif tools:
        tools = [*tools[:-1], {**tools[-1], "cache_control": lifetime}]
    if tools:
        params["tools"] = tools
        if not request.parallel:
            params["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    return params
