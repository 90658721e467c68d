"""A Redis that a test may kill, fill, empty and freeze: nobody else's messages are in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from crashes.processes import Process, running, wait_for

from deploy.embedded_redis import Redis
from deploy.folder import free_port


class OwnRedis:
    """The embedded server, and what can happen to it."""

    def __init__(self, embedded: Redis, process: Process) -> None:
        self.embedded, self.process = embedded, process
        self.url, self.port = embedded.url, embedded.port

    def ready(self) -> None:
        """Wait until it answers."""
        wait_for("Redis answers", self.embedded.is_ready)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def start(self) -> None:
        """Start it again with what it had written down."""
        self.process.start()
        self.ready()

    def say(self, *words: Any) -> Any:
        """One command."""
        with redis.Redis.from_url(self.url, socket_timeout=5) as client:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]

    def heal(self) -> None:
        """As it was, and empty: whatever a failed test left behind."""
        if self.process.running.poll() is not None:
            self.process.start()
        self.ready()
        self.say("REPLICAOF", "NO", "ONE")
        self.say("CONFIG", "SET", "maxmemory", "0")
        self.say("FLUSHALL")


@contextmanager
def own_redis(folder: Path) -> Iterator[OwnRedis]:
    """A Redis until the block ends."""
    embedded = Redis(folder / "redis", free_port(), lambda _: "of-this-test-only")
    if embedded.server is None:
        pytest.skip("needs a real redis-server")
    embedded.prepare()
    with running([str(embedded.server), str(embedded.data / "redis.conf")], {}, folder / "redis.log") as process:
        found = OwnRedis(embedded, process)
        found.ready()
        yield found
