"""Models behind Chat Completions, through the `openai` package: OpenAI, Azure, vLLM, Ollama, OpenRouter, Gemini's endpoint.

Always streamed, without retries. The one exception: if the provider refuses an optional parameter, the request is sent once more
without the parameter.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import closing
from functools import lru_cache
from typing import Any

import httpx2  # the SDK's transport, whose errors in mid-stream the SDK does not always wrap
import openai
import openai.resources.chat  # loads for a second, which would else stop running streams

from models.settings.providers import ProviderEntry
from workers.providers import ModelError, ModelReply, ModelRequest, metered
from workers.providers.errors import check_stream, connection_error
from workers.providers.limits import client_options, timeout
from workers.providers.neutral import summarized
from workers.providers.openai_errors import error_event, refused_parameter, status_error
from workers.providers.openai_reply import Draft
from workers.providers.openai_request import OPTIONAL, params

DEFAULT_URL = "https://api.openai.com/v1"
_CLIENTS = 100
_refusals: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
"""The parameters of OPTIONAL that a provider and model refused in this process."""


class OpenAIProvider:
    """A provider with Chat Completions. The process has one client for each entry and key."""

    def __init__(self, entry: ProviderEntry, key: str | None) -> None:
        self.entry, self.key = entry, key
        self._headers: dict[str, Any] = {} if key else {"Authorization": openai.omit}

    def ask(self, request: ModelRequest, on_text: Callable[[int, str], None]) -> ModelReply:
        draft = Draft(self.entry.name)
        with metered(draft), closing(self._chunks(request)) as chunks:
            for chunk in chunks:
                text = draft.add(chunk)
                if text:
                    on_text(*text)
            return summarized(draft.reply()) if request.folds else draft.reply()

    def models(self) -> list[str]:
        try:
            return [model.id for model in self._client().models.list(extra_headers=self._headers)]
        except openai.APIStatusError as error:
            raise status_error(error, "", self.key) from error
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, TypeError, AttributeError) as error:
            raise connection_error(error, self.entry.name) from error

    def _client(self) -> openai.OpenAI:
        """Return the client. Raises ModelError if a key is configured and missing. A local server may need no key."""
        if self.entry.api_key_env and not self.key:
            raise ModelError("invalid", f"{self.entry.api_key_env} is not set: provider {self.entry.name} needs a key")
        return _client(self.entry, self.key)

    def _chunks(self, request: ModelRequest) -> Generator[dict[str, Any], None, None]:
        """Yield the chunks as they arrive. Raises ModelError."""
        refusals = _refusals[self.entry.name, request.model]
        while True:
            try:
                yield from self._send(params(request, self.entry, frozenset(refusals)))
                return
            except openai.APIStatusError as error:
                parameter = refused_parameter(error, OPTIONAL)
                if parameter is None or parameter in refusals:
                    raise status_error(error, request.model, self.key) from error
                refusals.add(parameter)
            except (openai.APIConnectionError, httpx2.HTTPError) as error:
                raise connection_error(error, self.entry.name) from error
            except openai.APIError as error:
                raise error_event(error.body, self.key) from error
            except (ValueError, TypeError, AttributeError) as error:
                raise ModelError("failed", "The model's stream was not JSON") from error

    def _send(self, parameters: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        create = self._client().chat.completions.with_streaming_response.create
        with create(stream=True, extra_headers=self._headers, **parameters) as response:
            if response.headers.get("content-type", "").startswith("application/json"):
                yield self._whole(response.read())
                return
            check_stream(response.headers, self.entry.name)
            with response.parse() as stream:
                for chunk in stream:
                    yield chunk.to_dict(warnings=False)  # servers differ from the types

    def _whole(self, body: bytes) -> dict[str, Any]:
        """Return the response of a gateway that does not stream, as one chunk. Raises ModelError for an error with status 200."""
        chunk: dict[str, Any] = json.loads(body)
        if chunk.get("error"):
            raise error_event(chunk, self.key)
        return chunk


@lru_cache(_CLIENTS)
def _client(entry: ProviderEntry, key: str | None) -> openai.OpenAI:
    return openai.OpenAI(
        api_key=key or "none",  # the SDK requires a key
        base_url=entry.base_url or DEFAULT_URL,
        default_headers=entry.headers,
        timeout=timeout(entry),
        http_client=openai.DefaultHttpxClient(**client_options(entry)),
        max_retries=0,
    )
