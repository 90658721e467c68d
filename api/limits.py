"""How often a key may ask, how many streams it may have open, how many unknown keys an address may send.

Counted in this process's memory: that holds without Redis.

    anthropic-ratelimit-requests-limit: 2000                       what the bucket holds
    anthropic-ratelimit-requests-remaining: 1999                   what is in it
    anthropic-ratelimit-requests-reset: 2026-01-31T12:00:01Z       when it will be full again

A bucket of `requests_burst` tokens per API key, refilled at `requests_per_second`; a request takes one, or is a 429 that says
when there will be one. With several web processes each has buckets of its own.
"""

import math
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Interface

from flask import Flask, Response, g

from api import client
from api.errors import TooMany
from models.audit.principal import Principal
from models.settings import settings

_SIZE = 10_000
"""Keys that are remembered before the full buckets are thrown away: a full bucket is as good as none."""


@dataclass(frozen=True)
class Taken:
    """What a bucket said to one request."""

    good: bool
    left: int
    """Tokens that are left."""
    wait: float
    """Seconds until there is a token, if there is none."""
    full: float
    """Seconds until the bucket is full."""


class Buckets:
    """A token bucket per key, each no more than the moment at which it will be full (the generic cell rate algorithm)."""

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
            if wait > 1e-9:  # what floating point leaves is no debt
                return Taken(False, 0, wait, missing - 1 / self.rate)
            self._full_at[key] = now + missing
        return Taken(True, math.floor(self.burst - missing * self.rate + 1e-6), 0.0, missing)

    def give_back(self, key: str) -> None:
        """Put one token back into the bucket of `key`."""
        with self._lock:
            if key in self._full_at:
                self._full_at[key] -= 1 / self.rate

    def _make_room(self, now: float) -> None:
        """Forget the full buckets and, where all are in use, the fuller half: memory is bounded however many keys there are."""
        emptiest = sorted((item for item in self._full_at.items() if item[1] > now), key=lambda item: item[1], reverse=True)
        self._full_at = dict(emptiest[: _SIZE // 2])


def take(principal: Principal) -> None:
    """Count one request of this key. Raises TooMany."""
    said = settings()
    if not said.requests_per_second:
        return
    taken = _buckets(said.requests_per_second, said.requests_burst).take(principal.id, time.monotonic())
    g.limits = {
        "anthropic-ratelimit-requests-limit": str(said.requests_burst),
        "anthropic-ratelimit-requests-remaining": str(taken.left),
        "anthropic-ratelimit-requests-reset": _in(taken.full),
    }
    if not taken.good:
        raise TooMany(
            f"This API key asks more than {said.requests_per_second:g} times a second (after a rest, {said.requests_burst} "
            "times at once); come back after `retry-after`. The server's settings are ASSENT_REQUESTS_PER_SECOND and _BURST.",
            **{"retry-after": str(math.ceil(taken.wait)), "retry-after-ms": str(math.ceil(taken.wait * 1000))},
        )


def take_guess(address: str | None) -> None:
    """Count one look-up of a key that may be unknown, from this client's address. Raises TooMany."""
    said = settings()
    if not said.unknown_keys_per_second:
        return
    taken = _guesses().take(_neighbourhood(address), time.monotonic())
    if not taken.good:
        raise TooMany(
            f"Too many unknown API keys came from {address}; come back after `retry-after`, with a key that is known. The server's "
            "settings are ASSENT_UNKNOWN_KEYS_PER_SECOND and _BURST.",
            **{"retry-after": str(math.ceil(taken.wait)), "retry-after-ms": str(math.ceil(taken.wait * 1000))},
        )


def give_guess_back(address: str | None) -> None:
    """Take back `take_guess`: the key is known."""
    if settings().unknown_keys_per_second:
        _guesses().give_back(_neighbourhood(address))


def take_attempt(*names: str) -> None:
    """Count one attempt to sign in: by the client's address, and by each of `names`. Raises TooMany."""
    rate, burst = settings().sign_in_attempts_per_second, settings().sign_in_attempts_burst
    if not rate:
        return
    for name in (_neighbourhood(client.address()), *names):
        taken = _buckets(rate, burst).take(f"attempt {name}", time.monotonic())
        if not taken.good:
            raise TooMany(
                f"Too many attempts to sign in. Try again in {math.ceil(taken.wait)} s.",
                **{"retry-after": str(math.ceil(taken.wait))},
            )


def give_attempt_back(*names: str) -> None:
    """Take back `take_attempt`: the attempt succeeded."""
    rate, burst = settings().sign_in_attempts_per_second, settings().sign_in_attempts_burst
    for name in (_neighbourhood(client.address()), *names) if rate else ():
        _buckets(rate, burst).give_back(f"attempt {name}")


def _guesses() -> Buckets:
    return _buckets(settings().unknown_keys_per_second, settings().unknown_keys_burst)


def _neighbourhood(address: str | None) -> str:
    """Whose bucket it is: an IPv4 address's own, or that of the /64 of an IPv6 address, all of which one client may have."""
    if address and ":" in address:
        return "guess " + str(IPv6Interface(f"{address.partition('%')[0]}/64").network)
    return f"guess {address}"


class Streams:
    """The open streams of each key. Whoever uses it holds a lock."""

    def __init__(self) -> None:
        self._of: dict[str, set[object]] = {}

    def enter(self, key: str, stream: object) -> None:
        """Count `stream`. Raises TooMany."""
        most, streams = settings().streams_per_key, self._of.get(key, set())
        if most and len(streams) >= most:
            raise TooMany(
                f"This API key has {most} streams open, the most that it may have here (the server's setting is "
                "ASSENT_STREAMS_PER_KEY); close one first."
            )
        self._of.setdefault(key, streams).add(stream)

    def leave(self, key: str, stream: object) -> None:
        """Count it no more; again is nothing."""
        streams = self._of.get(key, set())
        streams.discard(stream)
        if not streams:
            self._of.pop(key, None)


def install(app: Flask) -> None:
    """Have every answer to a known key say what is left."""

    @app.after_request
    def say(response: Response) -> Response:
        response.headers.update(g.get("limits", {}))
        return response


_made: dict[tuple[float, int], Buckets] = {}


def _buckets(rate: float, burst: int) -> Buckets:
    return _made.setdefault((rate, burst), Buckets(rate, burst))


def _in(seconds: float) -> str:
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
