"""kombu: one Redis client per channel.

kombu 5.7 makes a new `redis.Redis` for each command, which takes a third of the CPU of an empty task. It has no setting for that.
`tests/local/test_patches_are_still_needed.py` fails when kombu keeps its client: then this file can go.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis


class Channel(redis.Channel):
    """A channel that keeps its synchronous client."""

    client_in_use: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[no-untyped-call]  # kombu
        if self.client_in_use is None or self.client_in_use.connection_pool is not self.pool:
            self.client_in_use = super()._create_client()  # type: ignore[no-untyped-call]
        return self.client_in_use


class Transport(redis.Transport):
    """Redis, with that channel."""

    Channel = Channel


TRANSPORT_ALIASES.update(
    redis="workers.patches.kombu_redis_client:Transport", rediss="workers.patches.kombu_redis_client:Transport"
)
