"""The HTTP client for a server. It records each request's delivery in the link's `Exchange`.

A failure below HTTP reaches the SDK as status 503: the SDK ends the whole connection at an exception, but only the one request at
an error status.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from models.settings import settings
from workers.guarded_http import OPEN_NOTHING_ELSE, GuardedTransport
from workers.tools.mcp.links import Exchange, ServerLink

_EVENTS = "text/event-stream"


def http_client(link: ServerLink) -> httpx2.AsyncClient:
    """Return a client for the link's server. Its only time limit is for connecting, as calls have limits of their own."""
    seconds = settings().mcp_connect_seconds
    ours = link.server.ours
    options = OPEN_NOTHING_ELSE | ({"max_redirects": 3} if ours else {})
    return httpx2.AsyncClient(
        transport=_NotingTransport(link),
        headers={**link.server.headers, "user-agent": "assent"},
        timeout=httpx2.Timeout(None, connect=seconds, pool=seconds),
        **options,
    )


class _NotingTransport(httpx2.AsyncBaseTransport):
    def __init__(self, link: ServerLink) -> None:
        self._link = link
        self._inner = GuardedTransport(private=link.server.ours, max_bytes=settings().mcp_response_bytes)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        message = _object(request.content) if request.method == "POST" else {}
        # Requests that are not the link's current one: responses to the server, notifications, streams for notifications.
        is_current = ("method" in message and "id" in message) or "last-event-id" in request.headers
        exchange = self._link.exchange if is_current else Exchange()
        request.extensions = {**request.extensions, "trace": exchange.trace}
        try:
            response = await self._inner.handle_async_request(request)
            if request.method == "POST":
                exchange.status = response.status_code
            if response.status_code == 200 and response.headers.get("content-type", "").lower().startswith(_EVENTS):
                exchange.has_response = True
                assert isinstance(response.stream, httpx2.AsyncByteStream)
                response.stream = _Events(response.stream, exchange)
            elif request.method == "POST":
                body = _object(await response.aread())
                exchange.has_response = body.get("id") == message.get("id") and ("result" in body or "error" in body)
        except httpx2.RequestError as error:
            exchange.error = error
            return httpx2.Response(503)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


def _object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; empty for anything else."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


class _Events(httpx2.AsyncByteStream):
    """A stream of events. The SDK stops reading at the response, so a stream that is read to its end has none."""

    def __init__(self, inner: httpx2.AsyncByteStream, exchange: Exchange) -> None:
        self._inner = inner
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._inner:
                yield part
        except httpx2.RequestError as error:
            self._exchange.error = error
            self._exchange.has_response = False
            raise
        self._exchange.has_response = False

    async def aclose(self) -> None:
        await self._inner.aclose()
