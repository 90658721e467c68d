"""HTTP to URLs that clients choose: https only, to public addresses only, with a limit on the response's size.

The transport resolves the name, refuses the request unless every address is public, and connects to an address that it checked. So
a second DNS answer changes nothing (DNS rebinding). TLS still verifies the certificate for the name. There are no proxies and no
passwords from the environment, no compression, because a size limit does not see a decompression bomb, and no redirects: create
clients with `OPEN_NOTHING_ELSE`.
"""

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import TypedDict

import httpx2

from models.settings import settings

_KEPT_SECONDS = 2.0
"""How long idle connections are kept: shorter than servers do, because a request into a closing connection is silently lost."""
_MOST_REASON = 300
"""Most characters of the reason why there is no response."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SPECIAL = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
"""Reserved networks. Some versions of `ipaddress` call parts of them global."""


class UrlRefused(httpx2.ConnectError):
    """The destination is not allowed. Nothing was sent."""


class NoResponse(Exception):
    """A request got no response. The message says why, for the person who chose the URL."""


class TooLong(httpx2.ReadError):
    """The response is longer than the limit."""


class _ClientOptions(TypedDict):
    trust_env: bool
    follow_redirects: bool
    max_redirects: int


OPEN_NOTHING_ELSE: _ClientOptions = {"trust_env": False, "follow_redirects": False, "max_redirects": 0}
"""Arguments that every `httpx2.AsyncClient` with this transport needs."""


def is_public(address: str) -> bool:
    """True if an IP address is public. An IPv6 address that embeds an IPv4 address is as public as the IPv4 address."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        embedded = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            embedded = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if embedded is not None:
            return is_public(str(embedded))
        if ip.teredo is not None or ip.is_site_local:
            return False
    elif any(ip in network for network in _SPECIAL):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not ip.is_unspecified


def check_url(url: httpx2.URL | str, *, http: bool = False) -> None:
    """Check a URL without resolving its host. `http`: allow http:// too. Raises UrlRefused."""
    try:
        address = httpx2.URL(url)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise UrlRefused(f"not a URL: {error}") from None
    if address.scheme not in ({"https", "http"} if http or settings().private_hosts.have(address.host) else {"https"}):
        raise UrlRefused("the URL must begin with https://")
    if not address.host:
        raise UrlRefused("the URL has no host")
    if address.userinfo:
        raise UrlRefused("the URL must not hold a user or a password")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport with the rules of this module, for one host. `private` allows http:// and private addresses.

    The pool reuses connections by address, so a second host at the same address is refused: its certificate would not be checked.
    """

    def __init__(self, *, private: bool = False, max_bytes: int) -> None:
        self._private = private
        self._max_bytes = max_bytes
        self._host: str | None = None
        self._inner = httpx2.AsyncHTTPTransport(
            verify=_ssl_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
            limits=httpx2.Limits(max_connections=100, keepalive_expiry=_KEPT_SECONDS),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request. Raises UrlRefused, TooLong (while the body is read), httpx2.RequestError."""
        check_url(request.url, http=self._private)
        self._host = self._host or request.url.host
        if request.url.host != self._host:
            raise UrlRefused("this connection is for another host")
        request.headers["accept-encoding"] = "identity"
        response = await self._send(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the response is compressed, which the request did not accept", request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Body(response.stream, self._max_bytes)
        return response

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        """Send to the first address that accepts a connection. The addresses share the time limit for connecting."""
        timeout: dict[str, float | None] = request.extensions.get("timeout", {})
        seconds = timeout.get("connect") or 60
        name = request.url.raw_host.decode("ascii")
        addresses = await self._resolve(name, request.url.port, seconds)
        extensions = request.extensions | {"sni_hostname": name, "timeout": {**timeout, "connect": seconds / len(addresses)}}
        while True:
            url = request.url.copy_with(host=addresses.pop(0))
            # The header `host` still has the name.
            pinned = httpx2.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=extensions)
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if not addresses:
                    raise

    async def _resolve(self, name: str, port: int | None, seconds: float) -> list[str]:
        """Return the addresses of a name. Raises UrlRefused, ConnectError, ConnectTimeout.

        UrlRefused if an address is not public, and, in the same words, without an address: the error says of no name in the
        operator's network whether the name exists.
        """
        try:
            async with asyncio.timeout(seconds):
                rows = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise httpx2.ConnectTimeout("the name could not be resolved in time") from None
        except (OSError, UnicodeError):
            rows = []
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in rows))
        is_allowed = all(is_public(each) or settings().private_hosts.have(name, each) for each in addresses)
        if not self._private and not (addresses and is_allowed):
            raise UrlRefused("the name does not resolve to a public address")
        if not addresses:
            raise httpx2.ConnectError("the name does not resolve")
        return addresses

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


def post(url: str, content: str | bytes, headers: dict[str, str], seconds: float) -> httpx2.Response:
    """Send a POST to a public address within `seconds`, and return the response, of whose body nothing is read.

    Raises NoResponse.
    """
    try:
        return asyncio.run(_post(url, content, headers, seconds))
    except TimeoutError:
        raise NoResponse(f"No response within {seconds:g} s.") from None
    except httpx2.HTTPError as error:
        raise NoResponse(f"{type(error).__name__}: {error}"[:_MOST_REASON]) from None


async def _post(url: str, content: str | bytes, headers: dict[str, str], seconds: float) -> httpx2.Response:
    async with (
        asyncio.timeout(seconds),
        httpx2.AsyncClient(transport=GuardedTransport(max_bytes=0), timeout=seconds, **OPEN_NOTHING_ELSE) as client,
        client.stream("POST", url, content=content, headers=headers) as response,
    ):
        return response


@lru_cache(maxsize=4)
def _ssl_context(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """Return a context with the certificates that the environment trusts. Reading them takes 50 ms."""
    return httpx2.create_ssl_context()


class _Body(httpx2.AsyncByteStream):
    """A response's body. Reading more than `limit` bytes raises TooLong."""

    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self._inner = inner
        self._room = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._room -= len(part)
            if self._room < 0:
                raise TooLong("the response is longer than the limit")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
