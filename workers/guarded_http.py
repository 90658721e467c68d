"""HTTP to URLs that somebody outside gave: https, to public addresses, with an end.

Every address that the name resolves to must be public, and the connection goes to the address that was checked: a name that
resolves otherwise a moment later changes nothing. TLS is for the name. There are no proxies and no passwords from the environment,
no compression, whose bombs no limit sees, and no redirects: clients are to be made with `OPEN_NOTHING_ELSE`.
"""

import asyncio
import contextlib
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypedDict

import httpcore2
import httpx2

from models.settings import settings

_KEPT_SECONDS = 2.0
"""Well before servers close what is idle: a request into a connection that is being closed is lost without a trace."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SPECIAL = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
"""Nobody's, though some versions of `ipaddress` call a part of it global."""


class Refused(httpx2.ConnectError):
    """We do not go there. Nothing was sent."""


class TooLong(httpx2.ReadError):
    """The answer is longer than it may be."""


class _ClientOptions(TypedDict):
    trust_env: bool
    follow_redirects: bool
    max_redirects: int


OPEN_NOTHING_ELSE: _ClientOptions = {"trust_env": False, "follow_redirects": False, "max_redirects": 0}
"""What an `httpx2.AsyncClient` is to be given beside the transport."""


def is_public(address: str) -> bool:
    """Whether an IP address is of the public internet. An IPv6 address that stands for an IPv4 address is as public as that one."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        within = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            within = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if within is not None:
            return is_public(str(within))
        if ip.teredo is not None or ip.is_site_local:
            return False
    elif any(ip in network for network in _SPECIAL):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not ip.is_unspecified


def check_url(url: httpx2.URL | str, *, http: bool = False) -> None:
    """Errors: Refused, for a URL that is refused whatever its name resolves to. `http`: without TLS is all right."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise Refused(f"not a URL: {error}") from None
    if parsed.scheme not in ({"https", "http"} if http or settings().private_hosts.have(parsed.host) else {"https"}):
        raise Refused("the URL must begin with https://")
    if not parsed.host:
        raise Refused("the URL has no host")
    if parsed.userinfo:
        raise Refused("the URL must not hold a user or a password")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connections as the module says. `private`: http:// and addresses that are not public are all right after all.

    httpx2's own transport takes no network backend, so this one passes requests to a pool of httpcore2, which does.
    """

    def __init__(self, *, private: bool = False, max_bytes: int | None) -> None:
        self._private = private
        self._max_bytes = max_bytes
        self._connections = httpcore2.AsyncConnectionPool(
            ssl_context=_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
            max_connections=100,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=_Backend(private=private),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it. Errors: Refused, TooLong (while the body is read), and httpx2's own."""
        check_url(request.url, http=self._private)
        request.headers["accept-encoding"] = "identity"
        response = await self._send(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, though that was not asked for", request=request)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connections.aclose()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        sent = httpcore2.Request(
            request.method,
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _errors_of_httpx2():
            response = await self._connections.handle_async_request(sent)
        return httpx2.Response(
            response.status, headers=response.headers, stream=_Body(response, self._max_bytes), extensions=response.extensions
        )


def refuse_unguarded() -> None:
    """Exit, with one line, unless a private address is refused in this process: prove it with a listener of our own.

    Call it as a process starts that opens URLs of clients.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        problem = asyncio.run(_proof(listener.getsockname()[1]))
        with contextlib.suppress(BlockingIOError):
            listener.accept()[0].close()
            problem = "a request to 127.0.0.1 was connected"
    if problem:
        raise SystemExit(
            f"assent: URLs of clients are not kept away from private addresses: {problem}. "
            "Install the versions of httpx2 and httpcore2 that pyproject.toml names."
        )


async def _proof(port: int) -> str | None:
    """What went wrong, or None if the request was refused before a connection was made."""
    try:
        async with httpx2.AsyncClient(transport=GuardedTransport(max_bytes=0), timeout=5, **OPEN_NOTHING_ELSE) as client:
            await client.get(f"https://127.0.0.1:{port}/")
    except Refused:
        return None
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing was proved
        return f"a request to 127.0.0.1 failed by {type(error).__name__} instead of being refused"
    return "a request to 127.0.0.1 was answered"


_SAME_NAME = (
    *("TimeoutException", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout"),
    *("NetworkError", "ConnectError", "ReadError", "WriteError", "ProxyError"),
    *("UnsupportedProtocol", "ProtocolError", "LocalProtocolError", "RemoteProtocolError"),
)
_ERRORS: dict[type, type[httpx2.HTTPError]] = {getattr(httpcore2, name): getattr(httpx2, name) for name in _SAME_NAME}


@contextlib.contextmanager
def _errors_of_httpx2() -> Iterator[None]:
    """Raise httpcore2's errors as httpx2's, by the most specific name."""
    try:
        yield
    except Exception as error:
        known = next((_ERRORS[kind] for kind in type(error).__mro__ if kind in _ERRORS), None)
        if known is None:
            raise
        raise known(str(error)) from error


@lru_cache(maxsize=4)
def _context(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """Whom TLS trusts, as the environment says; to read it takes 50 ms."""
    return httpx2.create_ssl_context()


class _Body(httpx2.AsyncByteStream):
    """A response's body. Reading it ends in TooLong where it is longer than `limit` bytes."""

    def __init__(self, response: httpcore2.Response, limit: int | None) -> None:
        self._response = response
        self._left = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx2():
            assert isinstance(self._response.stream, AsyncIterable)
            async for part in self._response.stream:
                if self._left is not None:
                    self._left -= len(part)
                    if self._left < 0:
                        raise TooLong("the answer is too long")
                yield part

    async def aclose(self) -> None:
        await self._response.aclose()


class _Backend(httpcore2.AsyncNetworkBackend):
    """Resolves, checks and connects, each name once per connection."""

    def __init__(self, *, private: bool) -> None:
        self._inner = httpcore2.AnyIOBackend()
        self._private = private

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        deadline = time.monotonic() + (60 if timeout is None else timeout)
        addresses = await self._resolve(host, port, deadline)
        while True:
            address = addresses.pop(0)
            left = max(deadline - time.monotonic(), 0) / (1 + len(addresses))
            try:
                return await self._inner.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if not addresses:
                    raise

    async def _resolve(self, host: str, port: int, deadline: float) -> list[str]:
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise httpcore2.ConnectTimeout("the name could not be resolved in time") from None
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError("the name does not resolve") from None
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        if not self._private and not all(is_public(each) or settings().private_hosts.have(host, each) for each in addresses):
            raise Refused("the name resolves to an address that is not public")
        return addresses
