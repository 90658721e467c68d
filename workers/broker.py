"""Celery's way to Redis, without what a hint does not need."""

from typing import Any

from kombu.transport import redis


class Channel(redis.Channel):  # type: ignore[misc]  # kombu has no types
    """One client for all commands: kombu makes a new one for each, which costs more than the command."""

    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()
        return self._kept


class Transport(redis.Transport):  # type: ignore[misc]
    """Redis, with that channel."""

    Channel = Channel

