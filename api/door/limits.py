"""Limits of requests per principal, and of unknown keys and of connections without a credential per client address.

`api.streams.hub` limits the open streams per principal.

Each process counts in its own memory, so the limits do not depend on Redis.

    anthropic-ratelimit-requests-limit: 2000                       size of the bucket
    anthropic-ratelimit-requests-remaining: 1999                   tokens in it
    anthropic-ratelimit-requests-reset: 2026-01-31T12:00:01Z       time at which it will be full again

Each API key has a bucket of `requests_burst` tokens, refilled at `requests_per_second`. A request takes a token. Without a token it
is a 429 that names the time of the next one. Several web processes have separate buckets.
"""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Interface
from typing import ClassVar

from flask import Flask, Response, g, request

from api.door import client
from api.door.errors import TooMany, type_of
from models.audit.principal import Principal
from models.settings import settings

log = logging.getLogger("assent.api")

_SIZE = 10_000
"""Number of buckets at which full ones are dropped. A full bucket carries no information."""


@dataclass(frozen=True)
class Taken:
    """The result of taking a token."""

    good: bool
    """False if the bucket was empty."""
    remaining: int
    """Remaining tokens."""
    wait: float
    """Seconds until the next token, if the bucket was empty."""
    full: float
    """Seconds until the bucket is full."""


class Buckets:
    """A token bucket per key. Each is stored as the time at which it will be full (the generic cell rate algorithm)."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate, self.burst = rate, burst
        self._full_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def take(self, key: str, now: float) -> Taken:
        """Take a token from the bucket of `key` at `now`, in seconds of any steady clock."""
        with self._lock:
            if len(self._full_at) >= _SIZE:
                self._make_room(now)
            missing = max(self._full_at.get(key, now) - now, 0.0) + 1 / self.rate
            wait = missing - self.burst / self.rate
            if wait > 1e-9:  # tolerates rounding errors
                return Taken(False, 0, wait, missing - 1 / self.rate)
            self._full_at[key] = now + missing
        return Taken(True, math.floor(self.burst - missing * self.rate + 1e-6), 0.0, missing)

    def give_back(self, key: str) -> None:
        """Put one token back into the bucket of `key`."""
        with self._lock:
            if key in self._full_at:
                self._full_at[key] -= 1 / self.rate

    def _make_room(self, now: float) -> None:
        """Drop all full buckets, and keep at most half of the limit: the emptiest. This bounds the memory."""
        emptiest = sorted((item for item in self._full_at.items() if item[1] > now), key=lambda item: item[1], reverse=True)
        self._full_at = dict(emptiest[: _SIZE // 2])


def take(principal: Principal) -> None:
    """Count one request of this principal. Its connection no longer counts for the client's address. Raises TooMany."""
    g.principal = str(principal)
    if connection := _connection.get():
        connection.uncount()
    s = settings()
    if not s.requests_per_second:
        return
    token = _buckets(s.requests_per_second, s.requests_burst).take(principal.id, time.monotonic())
    g.limits = {
        "anthropic-ratelimit-requests-limit": str(s.requests_burst),
        "anthropic-ratelimit-requests-remaining": str(token.remaining),
        "anthropic-ratelimit-requests-reset": _in(token.full),
    }
    to_program = (
        f"This API key sends more than {s.requests_per_second:g} requests a second (burst: {s.requests_burst}); retry after "
        "`retry-after`. The server's settings are ASSENT_REQUESTS_PER_SECOND and ASSENT_REQUESTS_BURST."
    )
    to_person = f"You sent too many requests within a short time. Try again in {math.ceil(token.wait)} s."
    _check(token, to_program if principal.kind == "api_key" else to_person)


def _check(token: Taken, message: str) -> None:
    """Raise TooMany if the bucket was empty."""
    if not token.good:
        waits = {"retry-after": str(math.ceil(token.wait)), "retry-after-ms": str(math.ceil(token.wait * 1000))}
        raise TooMany(message, **waits)


def take_guess(address: str | None) -> None:
    """Count one look-up of a key that may be unknown, from this client's address. Raises TooMany."""
    if not settings().unknown_keys_per_second:
        return
    token = _guesses().take(_neighbourhood(address), time.monotonic())
    _check(
        token,
        f"Too many unknown API keys came from {address}; retry after `retry-after`, with a valid key. The server's settings "
        "are ASSENT_UNKNOWN_KEYS_PER_SECOND and ASSENT_UNKNOWN_KEYS_BURST.",
    )


def give_guess_back(address: str | None) -> None:
    """Undo `take_guess`, since the key is known."""
    if settings().unknown_keys_per_second:
        _guesses().give_back(_neighbourhood(address))


def take_attempt(*names: str, to: str = "sign in") -> None:
    """Count one attempt `to` do something, by the client's address and by each of `names`. Raises TooMany.

    Each `to` has buckets of its own: a scanner that opens old links keeps nobody behind its address from signing in.
    """
    rate, burst = settings().sign_in_attempts_per_second, settings().sign_in_attempts_burst
    if not rate:
        return
    for name in (_neighbourhood(client.address()), *names):
        token = _buckets(rate, burst).take(f"attempt to {to} {name}", time.monotonic())
        _check(token, f"Too many attempts to {to}. Try again in {math.ceil(token.wait)} s.")


def give_attempt_back(*names: str, to: str = "sign in") -> None:
    """Undo `take_attempt`, since the attempt succeeded."""
    rate, burst = settings().sign_in_attempts_per_second, settings().sign_in_attempts_burst
    for name in (_neighbourhood(client.address()), *names) if rate else ():
        _buckets(rate, burst).give_back(f"attempt to {to} {name}")


def log_refusal(request_id: str, about: str, *, principal: str = "", address: str | None = None) -> None:
    """Write a line about a refused request. `about` holds no value that the client chose, which may be a secret.

    A client chooses how many requests are refused. So each principal or client address has few lines a second, and all of them
    together have ten times as many. The next line counts the requests that have none.
    """
    global _not_logged  # noqa: PLW0603 - one log per process
    if not _may_log(f"refusal {principal or _neighbourhood(address)}"):
        _not_logged += 1
        return
    left_out = f"; {_not_logged} refused requests before it are not logged" if _not_logged else ""
    _not_logged = 0
    log.warning("%s refused: %s, by %s%s", request_id, about, principal or "nobody known", left_out)


def _may_log(owner: str) -> bool:
    rate, burst, now = settings().refusals_logged_per_second, settings().refusals_logged_burst, time.monotonic()
    if not rate:
        return True
    return _buckets(rate, burst).take(owner, now).good and _buckets(10 * rate, 10 * burst).take("refusals", now).good


_not_logged = 0
"""Refused requests since the last line about one."""


def _guesses() -> Buckets:
    return _buckets(settings().unknown_keys_per_second, settings().unknown_keys_burst)


def _neighbourhood(address: str | None) -> str:
    """Return the bucket's key: the IPv4 address, or the /64 network of an IPv6 address, which one client may own as a whole."""
    if address and ":" in address:
        return "guess " + str(IPv6Interface(f"{address.partition('%')[0]}/64").network)
    return f"guess {address}"


class ClientConnection:
    """A connection to a client. While it has shown no valid credential, it counts for one client address."""

    _open: ClassVar[Counter[str]] = Counter()
    """The counted connections of this process, by the part of their address that one client may own."""

    def __init__(self, peer: str | None) -> None:
        self.peer = peer
        self._counts_for: str | None = None
        self.had_a_request = False

    def count(self, address: str | None) -> None:
        """Count this connection for a client's address. No-op for an unknown address, and for a trusted proxy. Raises TooMany."""
        limit = settings().connections_per_address
        owner = None if not limit or address is None or client.is_trusted(address) else _neighbourhood(address)
        if owner == self._counts_for:
            return
        self.uncount()
        if owner is None:
            return
        if self._open[owner] >= limit:
            raise TooMany(
                f"{address} has {limit} open connections without a valid credential; close one first. The server's setting is "
                "ASSENT_CONNECTIONS_PER_ADDRESS.",
                **{"retry-after": "1"},
            )
        self._open[owner] += 1
        self._counts_for = owner

    def uncount(self) -> None:
        """Stop counting this connection. Idempotent."""
        if self._counts_for is not None:
            self._open[self._counts_for] -= 1
            if not self._open[self._counts_for]:
                del self._open[self._counts_for]
            self._counts_for = None

    def end_request(self) -> None:
        """Stop counting this connection if it is a proxy's: the next request may come from another client."""
        self.had_a_request = True
        if self.peer is None or client.is_trusted(self.peer):
            self.uncount()


_connection: ContextVar[ClientConnection | None] = ContextVar("connection", default=None)


def had_a_request() -> bool:
    """True if the present connection has had a request."""
    connection = _connection.get()
    return connection is not None and connection.had_a_request


def request_ended() -> None:
    """Stop counting the present connection if it is a proxy's."""
    if connection := _connection.get():
        connection.end_request()


@contextmanager
def connected(peer: str | None) -> Iterator[ClientConnection]:
    """Count a connection from `peer` while the block runs. Raises TooMany."""
    connection = ClientConnection(peer)
    connection.count(peer)
    _connection.set(connection)
    try:
        yield connection
    finally:
        connection.uncount()


def install(app: Flask) -> None:
    """Count each request's connection until it shows a credential. Responses to known keys get the rate limit's headers, refusals a
    line of the log."""

    @app.before_request
    def count_connection() -> None:
        if connection := _connection.get():
            connection.count(client.address())

    @app.after_request
    def add_headers(response: Response) -> Response:
        response.headers.update(g.get("limits", {}))
        if response.status_code >= 400:
            route = request.url_rule or "an unknown route"
            about = f"{response.status_code} {type_of(response.status_code)}, {request.method} {route}"
            log_refusal(g.request_id, about, principal=g.get("principal", ""), address=client.address())
        return response


_by_limit: dict[tuple[float, int], Buckets] = {}


def _buckets(rate: float, burst: int) -> Buckets:
    return _by_limit.setdefault((rate, burst), Buckets(rate, burst))


def _in(seconds: float) -> str:
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
