"""kombu's transports of Redis and Redis Sentinel, which show that the loop of their worker runs, and keep one client per channel.

kombu 5.7 makes a new `redis.Redis` for each command, which takes a third of the CPU of an empty task. No setting changes that.
`tests/local/test_patches_are_still_needed.py` fails when kombu keeps its client: then delete `KeepsClient`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

from workers import liveness


class KeepsClient(redis.Channel):
    """A channel that keeps its synchronous client."""

    kept_client: Any = None

    @contextmanager
    def conn_or_acquire(self, client: Any = None) -> Iterator[Any]:
        """Yield `client`, or the channel's client. A lost connection gives the channel a new pool, and so a new client."""
        if client is None and (self.kept_client is None or self.kept_client.connection_pool is not self.pool):
            with super().conn_or_acquire() as self.kept_client:
                pass
        yield client or self.kept_client


class SentinelChannel(KeepsClient, redis.SentinelChannel):
    """A channel to the master that the Sentinels name."""


class Transport(redis.Transport):
    """Redis, with channels that keep their client. A worker's loop calls each of these methods: see `workers.liveness`."""

    Channel = KeepsClient

    def establish_connection(self) -> Any:
        """Connect, in the loop that waits for Redis, or in another."""
        liveness.connects()
        return super().establish_connection()  # type: ignore[no-untyped-call]

    def drain_events(self, connection: Any, timeout: Any = None, **options: Any) -> Any:
        """Take messages, in the loop of a pool of threads or greenlets."""
        liveness.alive()
        return super().drain_events(connection, timeout, **options)  # type: ignore[no-untyped-call]

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Take messages in the event loop of a pool of processes."""
        super().register_with_event_loop(connection, loop)  # type: ignore[no-untyped-call]
        loop.on_tick.add(liveness.alive)


class SentinelTransport(Transport, redis.SentinelTransport):
    """Redis Sentinel, in the same way."""

    Channel = SentinelChannel


TRANSPORT_ALIASES.update(
    redis="workers.patches.kombu_redis_client:Transport",
    rediss="workers.patches.kombu_redis_client:Transport",
    sentinel="workers.patches.kombu_redis_client:SentinelTransport",
)
