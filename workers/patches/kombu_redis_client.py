"""kombu: keeps one Redis client per channel.

kombu 5.7 makes a new `redis.Redis` for each command, which takes a third of the CPU of an empty task. No setting changes that.
`tests/local/test_patches_are_still_needed.py` fails when kombu keeps its client: then delete this file.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis


class Channel(redis.Channel):
    """A channel that keeps its synchronous client."""

    kept_client: Any = None

    @contextmanager
    def conn_or_acquire(self, client: Any = None) -> Iterator[Any]:
        """Yield `client`, or the channel's client. A lost connection gives the channel a new pool, and so a new client."""
        if client is None and (self.kept_client is None or self.kept_client.connection_pool is not self.pool):
            with super().conn_or_acquire() as self.kept_client:
                pass
        yield client or self.kept_client


class Transport(redis.Transport):
    """Redis, with channels that keep their client."""

    Channel = Channel


TRANSPORT_ALIASES.update(
    redis="workers.patches.kombu_redis_client:Transport", rediss="workers.patches.kombu_redis_client:Transport"
)
