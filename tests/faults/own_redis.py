"""A Redis of its own for a test, which may kill, fill, empty and freeze it."""

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
    """The embedded server, and the faults of a Redis."""

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
        """Start the server again with its data."""
        self.process.start()
        self.ready()

    def execute(self, *words: Any) -> Any:
        """Run one command."""
        with redis.Redis.from_url(self.url, socket_timeout=5) as client:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]

    def heal(self) -> None:
        """Undo all faults, and delete all data."""
        if self.process.running.poll() is not None:
            self.process.start()
        self.ready()
        self.execute("REPLICAOF", "NO", "ONE")
        self.execute("CONFIG", "SET", "maxmemory", "0")
        self.execute("FLUSHALL")


@contextmanager
def own_redis(folder: Path) -> Iterator[OwnRedis]:
    """Run a Redis until the block ends."""
    embedded = Redis(folder / "redis", free_port(), lambda _: "of-this-test-only")
    if embedded.server is None:
        pytest.skip("needs a real redis-server")
    embedded.prepare()
    with running([str(embedded.server), str(embedded.data / "redis.conf")], {}, folder / "redis.log") as process:
        server = OwnRedis(embedded, process)
        server.ready()
        yield server
