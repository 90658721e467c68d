"""Limits of one response, below the SDKs: its bytes and its time, also while no line of its stream ends."""

import time
from collections.abc import Iterator
from typing import Any

import httpx2

from models.settings import settings
from models.settings.providers import ProviderEntry
from workers.providers import ModelError

CONNECT_SECONDS = 5


class LimitedStream(httpx2.SyncByteStream):
    """The bytes of a response. Raises ModelError beyond the provider's limits."""

    def __init__(self, stream: httpx2.SyncByteStream, entry: ProviderEntry) -> None:
        self._stream = stream
        self._max_bytes = entry.limits.response_bytes or settings().model_response_bytes
        self._seconds = entry.limits.seconds or settings().model_timeout_seconds
        self._deadline = time.monotonic() + self._seconds

    def __iter__(self) -> Iterator[bytes]:
        count = 0
        for chunk in self._stream:
            count += len(chunk)
            if count > self._max_bytes:
                raise ModelError("failed", f"The model's response is longer than {self._max_bytes} bytes")
            if time.monotonic() > self._deadline:
                raise ModelError("timed_out", f"The model took longer than {self._seconds:g} s")
            yield chunk

    def close(self) -> None:
        """Close the response."""
        self._stream.close()


def timeout(entry: ProviderEntry) -> httpx2.Timeout:
    """Return the waits for a connection and for the next bytes."""
    return httpx2.Timeout(entry.silence_seconds, connect=CONNECT_SECONDS)


def client_options(entry: ProviderEntry) -> dict[str, Any]:
    """Return options of an SDK's HTTP client: the limits, and no redirects, which would carry the key to another host."""

    def limit(response: httpx2.Response) -> None:
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = LimitedStream(response.stream, entry)

    return {"timeout": timeout(entry), "event_hooks": {"response": [limit]}, "follow_redirects": False}
