"""HTTP to URLs that somebody outside gave: https, to public addresses, with an end.

Every address that the name resolves to must be public, and the connection goes to the address that was checked: a name that
resolves otherwise a moment later changes nothing. TLS is for the name. There are no proxies and no passwords from the environment,
no compression, whose bombs no limit sees, and no redirects: clients are to be made with `OPEN_NOTHING_ELSE`.
"""

import asyncio
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from functools import lru_cache
from typing import Any, TypedDict

import httpcore2
import httpx2

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
    if parsed.scheme not in ({"https", "http"} if http else {"https"}):
        raise Refused("the URL must begin with https://")
    if not parsed.host:
        raise Refused("the URL has no host")
    if parsed.userinfo:
        raise Refused("the URL must not hold a user or a password")


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """Connections as the module says. `private`: http:// and addresses that are not public are all right after all."""

    def __init__(self, *, private: bool = False, max_bytes: int | None) -> None:
        context = _context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        super().__init__(verify=context, trust_env=False)
        self._private = private
        self._max_bytes = max_bytes
        # The class has no parameter for it.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context, max_connections=100, keepalive_expiry=_KEPT_SECONDS, network_backend=_Backend(private=private)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it. Errors: Refused, TooLong (while the body is read), and httpx2's own."""
        check_url(request.url, http=self._private)
        request.headers["accept-encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, though that was not asked for", request=request)
        if self._max_bytes is not None:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Bounded(response.stream, self._max_bytes)
        return response


@lru_cache(maxsize=4)
def _context(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """Whom TLS trusts, as the environment says; to read it takes 50 ms."""
    return httpx2.create_ssl_context()


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends in TooLong where it is longer than that."""

    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self._inner = inner
        self._left = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._left -= len(part)
            if self._left < 0:
                raise TooLong("the answer is too long")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


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
        if not self._private and not all(is_public(address) for address in addresses):
            raise Refused("the name resolves to an address that is not public")
        return addresses
