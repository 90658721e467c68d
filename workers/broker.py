"""Celery's way to Redis, without what a hint does not need."""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis


class Channel(redis.Channel):
    """One client for all commands: kombu makes a new one for each, which costs more than the command."""

    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[no-untyped-call]  # kombu
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[no-untyped-call]
        return self._kept


class Transport(redis.Transport):
    """Redis, with that channel."""

    Channel = Channel


TRANSPORT_ALIASES.update(redis="workers.broker:Transport", rediss="workers.broker:Transport")
