"""The address of Redis: one server, or the master that Sentinels name.

    redis://:PASSWORD@redis.example:6379/0
    sentinel://:PASSWORD@one.example:26379/0;sentinel://:PASSWORD@two.example:26379/0

Each part of an address of Sentinels has the login of Redis and the same number of a database, as kombu goes from part to part.
"""

from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import redis
from redis.sentinel import Sentinel

from models.settings import settings

_SENTINEL_PORT = 26379


def client(seconds: float) -> "redis.Redis":
    """Return a client of Redis whose calls wait at most so many seconds. Behind Sentinels, it asks them at each connection."""
    limits = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    parts = _sentinels()
    if not parts:
        return redis.Redis.from_url(settings().redis_url, **limits)
    addresses = [(part.hostname or "localhost", part.port or _SENTINEL_PORT) for part in parts]
    of_sentinels = limits | _login(parts[0], is_sentinel=True)
    database = int(parts[0].path.strip("/") or 0)
    sentinel = Sentinel(addresses, sentinel_kwargs=of_sentinels, db=database, **limits, **_login(parts[0]))  # type: ignore[no-untyped-call]
    master: redis.Redis = sentinel.master_for(settings().redis_master)  # type: ignore[no-untyped-call]
    return master


def options(**limits: Any) -> dict[str, Any]:
    """Return Celery's options of the transport: these limits of its sockets and, behind Sentinels, how to find the master."""
    parts = _sentinels()
    if not parts:
        return limits
    of_sockets = {name: limit for name, limit in limits.items() if name.startswith("socket_")}
    return {
        **limits,
        "master_name": settings().redis_master,
        "sentinel_kwargs": of_sockets | _login(parts[0], is_sentinel=True),
    }


def _sentinels() -> list[SplitResult]:
    """Return the parts of an address of Sentinels; none for the address of one server."""
    parts = [urlsplit(part) for part in settings().redis_url.split(";")]
    return parts if parts[0].scheme == "sentinel" else []


def _login(part: SplitResult, *, is_sentinel: bool = False) -> dict[str, str]:
    if is_sentinel and not settings().redis_sentinel_auth:
        return {}
    login = {"username": part.username, "password": part.password}
    return {name: unquote(value) for name, value in login.items() if value}
