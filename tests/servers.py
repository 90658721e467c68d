"""One Postgres and one Redis for a whole test run: `python tests/servers.py RUN_FOLDER PID_OF_PYTEST`.

The first test process that needs the servers starts this script. The script ends when pytest's process ends, however that happens.
It writes RUN_FOLDER/servers.json once the template database has the schema. Nothing is synced to disk.

The data are in memory where there is room. A database has 600 files, and the file system of a disk takes half a millisecond of CPU
time to create each.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import psutil
from own_database import TEMPLATE

from deploy.embedded_postgres import Postgres
from deploy.embedded_redis import Redis
from deploy.folder import MARK, Folder
from deploy.migrate import migrate
from deploy.supervisor import Supervisor

MEMORY = Path("/dev/shm")
ROOM = 3 << 30
"""Bytes: more than the data of a whole test run."""


def main() -> None:
    """Serve until pytest ends."""
    run, pytest = Path(sys.argv[1]), psutil.Process(int(sys.argv[2]))
    with Folder(data_folder(run)) as folder:
        postgres = Postgres(folder.path / "postgres", folder.port("postgres"), folder.secret, fast=True, database=TEMPLATE)
        redis = Redis(folder.path / "redis", folder.port("redis"), folder.secret)
        supervisor = Supervisor(Path.cwd())
        supervisor.listen()
        try:
            start(supervisor, postgres, redis, {"PATH": os.environ["PATH"], MARK: str(folder.path)})
            migrate(postgres.url("owner"))
            urls = {role: postgres.url(role) for role in ("postgres", "owner", "app", "system")}
            new = run / "servers.json.new"
            new.touch(0o600)
            new.write_text(json.dumps({**urls, "redis": redis.url}))
            new.rename(run / "servers.json")
            while pytest.is_running() and not supervisor.ending.wait(0.3):
                pass
        finally:
            supervisor.hurry.set()
            supervisor.stop()
            shutil.rmtree(folder.path, ignore_errors=True)
    shutil.rmtree(run, ignore_errors=True)


def data_folder(run: Path) -> Path:
    """Return the path of the run's data."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    return MEMORY / run.name if has_room else run / "data"


def start(supervisor: Supervisor, postgres: Postgres, redis: Redis, env: dict[str, str]) -> None:
    """Start both servers, wait until they are ready, and create the roles."""
    redis.prepare()
    with (redis.data / "redis.conf").open("a") as configuration:
        configuration.write("databases 64\n")  # three for each test process
    supervisor.start(redis.child(env))
    postgres.prepare()
    with (postgres.data / "postgresql.conf").open("a") as configuration:
        # Else Postgres plans a statement at each of its first five runs on a connection, and tests run most statements less often.
        configuration.write("plan_cache_mode = force_generic_plan\n")
    supervisor.start(postgres.child(env))
    supervisor.wait_for("Postgres", postgres.is_ready, 60)
    supervisor.wait_for("Redis", redis.is_ready, 30)
    postgres.create_roles()


if __name__ == "__main__":
    main()
