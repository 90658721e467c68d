"""HTTP for the protocol's client: what goes wrong below ends no more than its own request, whose flight learns what became of it.

The SDK ends all of a connection when one exchange fails, and its errors do not tell a server's answer from a stream that broke off.
Both are decided here, where the bytes are.
"""

import json
from collections.abc import AsyncIterator

import httpx2

from models.settings import settings
from workers.guarded_http import OPEN_NOTHING_ELSE, GuardedTransport, TooLong
from workers.tools.mcp.flights import Flight, current
from workers.tools.mcp.servers import Server

_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


def http_client(server: Server) -> httpx2.AsyncClient:
    """A client for one server. It has no time limit but the connection's: calls have their own."""
    seconds = settings().mcp_connect_seconds
    options = OPEN_NOTHING_ELSE | ({"max_redirects": 3} if server.ours else {})
    return httpx2.AsyncClient(
        transport=_Watched(GuardedTransport(private=server.ours or settings().mcp_http, max_bytes=None)),
        headers={**server.headers, "user-agent": "assent"},
        timeout=httpx2.Timeout(None, connect=seconds, pool=seconds),
        **options,
    )


class _Watched(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        flight = _flight(request)
        request.extensions = {**request.extensions, "trace": flight.trace}
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.RequestError as error:
            flight.error = error
            return httpx2.Response(503)  # for the SDK, which takes it as an error of this request alone
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        has_events = kind == "text/event-stream" and response.status_code == 200
        if request.method == "POST":
            flight.status, flight.streaming, flight.broken = response.status_code, has_events, False
        if has_events:
            flight.broken = False  # a GET goes on with what a POST began
            response.stream = _Events(response.stream, flight, settings().mcp_response_bytes)
        elif request.method == "POST" and (kind == "application/json" or response.status_code >= 400):
            return await _whole(response, response.stream, flight)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


def _flight(request: httpx2.Request) -> Flight:
    """Whose request it is. What is sent while a call runs, say the answer to a ping, is nobody's."""
    flight = current.get()
    if flight is None or (flight.is_call and request.method == "POST" and not _carries(request, flight)):
        return Flight()
    return flight


def _carries(request: httpx2.Request, flight: Flight) -> bool:
    said = json.loads(request.content)
    return isinstance(said, dict) and said.get("method") == "tools/call" and said.get("id") == flight.request_id


async def _whole(response: httpx2.Response, stream: httpx2.AsyncByteStream, flight: Flight) -> httpx2.Response:
    """The response with its body read; what is cut or too long reads as empty."""
    body = bytearray()
    try:
        async for part in stream:
            body += part
            if len(body) > settings().mcp_response_bytes:
                raise TooLong("the answer is too long")
    except httpx2.TransportError as error:
        flight.error, flight.broken = error, True
        flight.too_long = isinstance(error, TooLong)
        body.clear()
    finally:
        await stream.aclose()
    flight.answered = _is_answer(bytes(body), flight)
    headers = [
        (name, value) for name, value in response.headers.raw if name.lower() not in {b"content-length", b"transfer-encoding"}
    ]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body), extensions=response.extensions)


def _is_answer(body: bytes, flight: Flight) -> bool:
    """True if the body is the protocol's response to this very request. An error of a gateway has no id, or one of its own."""
    try:
        said = json.loads(body)
    except ValueError:
        return False
    if not isinstance(said, dict) or said.get("jsonrpc") != "2.0" or not ("result" in said or "error" in said):
        return False
    return not flight.is_call or said.get("id") == flight.request_id


class _Events(httpx2.AsyncByteStream):
    """A stream of events, each of at most `limit` bytes. The SDK reads no further than the answer: at the end there was none."""

    def __init__(self, inner: httpx2.AsyncByteStream, flight: Flight, limit: int) -> None:
        self._inner = inner
        self._flight = flight
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, tail = 0, b""
        try:
            async for part in self._inner:
                window = tail + part
                end = max(window.rfind(mark) for mark in _ENDS)
                size = len(window) - end if end >= 0 else size + len(part)
                tail = window[-3:]
                if size > self._limit:
                    self._flight.too_long = True
                    raise httpx2.SSEError("an event is too long")
                yield part
        except httpx2.TransportError as error:
            self._flight.error, self._flight.broken = error, True
            raise
        self._flight.broken = True

    async def aclose(self) -> None:
        await self._inner.aclose()
