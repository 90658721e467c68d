"""All of Assent for a benchmark: its processes and the stand-in model, on one Postgres with fsync on, and one Redis."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil
import psycopg
from benchmarks.counting import FOLDER
from redis import Redis as Client

from deploy.embedded_postgres import Postgres
from deploy.embedded_redis import Redis
from deploy.folder import MARK, Folder, free_port
from deploy.migrate import migrate
from deploy.supervisor import Child, Supervisor, shell

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Servers:
    """The running servers."""

    folder: Folder
    postgres: Postgres
    redis_url: str
    model_url: str
    supervisor: Supervisor


@dataclass(frozen=True)
class House:
    """The running processes of Assent: their address, a key, the pipe of marks, and their ids."""

    url: str
    key: str
    admin_url: str
    pipe: Path
    pids: dict[str, int]
    """Process ids by name, including the servers."""
    counts: Path
    """The folder of `benchmarks.counting`."""


@contextlib.contextmanager
def servers(postgres_port: int | None = None, redis_url: str | None = None) -> Iterator[Servers]:
    """Run Postgres, Redis and the stand-in model, embedded or on servers that already run, which must be for benchmarks only.

    Such a Postgres listens on loopback and trusts the user `postgres`; its database `assent` is dropped.
    """
    with tempfile.TemporaryDirectory(prefix="assent-bench-") as name, Folder(Path(name) / "data") as folder:
        supervisor = Supervisor(ROOT, output=(folder.path / "servers.log").open("w"))
        env = {"PATH": os.environ["PATH"], MARK: str(folder.path)}
        postgres = Postgres(folder.path / "postgres", postgres_port or folder.port("postgres"), folder.secret)
        redis = Redis(folder.path / "redis", folder.port("redis"), folder.secret)
        try:
            if redis_url is None:
                redis.prepare()
                supervisor.start(redis.child(env))
                supervisor.wait_for("Redis", redis.is_ready, 30)
            if postgres_port is None:
                postgres.prepare()
                supervisor.start(postgres.child(env))
                supervisor.wait_for("Postgres", postgres.is_ready, 60)
            with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as db:
                db.execute("DROP DATABASE IF EXISTS assent WITH (FORCE)")
                db.execute("ALTER SYSTEM SET max_wal_size = '4GB'")  # a checkpoint in mid-run would write whole pages to the WAL
                db.execute("ALTER SYSTEM SET checkpoint_timeout = '1h'")
                db.execute("SELECT pg_reload_conf()")
            postgres.create_roles()
            port = free_port()
            supervisor.start(Child("standin", shell(sys.executable, "-m", "deploy.standin", "--port", str(port)), env))
            migrate(postgres.url("owner"))
            yield Servers(folder, postgres, redis_url or redis.url, f"http://127.0.0.1:{port}", supervisor)
        finally:
            supervisor.hurry.set()
            supervisor.stop()


@contextlib.contextmanager
def house(on: Servers, tools: int = 2, turns: int = 1, in_flight: int = 300, **settings: str) -> Iterator[House]:
    """Run all of Assent, with a workspace and a key that has all scopes."""
    pipe = on.folder.path / "marks"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    counts = Path(tempfile.mkdtemp(prefix="counts-", dir=on.folder.path))
    port = free_port()
    env = {
        **environment(on),
        "ANTHROPIC_BASE_URL": on.model_url,
        "ANTHROPIC_API_KEY": "stand-in",
        "ASSENT_SHELL": "bare",
        "ASSENT_REQUESTS_PER_SECOND": "0",
        "ASSENT_WORKDIR_ROOT": str(on.folder.path / "workdirs"),
        "ASSENT_TURNS_IN_FLIGHT": str(in_flight),
        "BENCH_PIPE": str(pipe),
        FOLDER: str(counts),
        **settings,
    }
    supervisor = Supervisor(ROOT, output=(on.folder.path / "house.log").open("w"))
    try:
        for child, line in _processes(port, tools, turns, in_flight).items():
            supervisor.start(Child(child, line, env, stop_signal=signal.SIGKILL))  # a benchmark that is killed leaves nobody
        url = f"http://127.0.0.1:{port}"
        supervisor.wait_for("the API", lambda: answers(url), 60)
        key = _key(env)
        pids = _servers_pids(on) | on.supervisor.pids | supervisor.pids
        yield House(url, key, on.postgres.url("postgres"), pipe, pids, counts)
    finally:
        supervisor.hurry.set()
        supervisor.stop()
        os.close(reader)


def environment(on: Servers) -> dict[str, str]:
    """Return the environment of each process."""
    return {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        MARK: str(on.folder.path),
        "PYTHONPATH": str(ROOT / "tests"),
        "DATABASE_URL": on.postgres.url("app"),
        "DATABASE_SYSTEM_URL": on.postgres.url("system"),
        "REDIS_URL": on.redis_url,
        "ASSENT_ENVIRONMENT": "development",
    }


def _servers_pids(on: Servers) -> dict[str, int]:
    """Return the process ids of Postgres and Redis, whoever started them."""
    with psycopg.connect(on.postgres.url("postgres"), autocommit=True) as db, Client.from_url(on.redis_url) as client:
        return {"postgres": psutil.Process(db.info.backend_pid).ppid(), "redis": client.info("server")["process_id"]}


def _processes(port: int, tools: int, turns: int, in_flight: int) -> dict[str, str]:
    worker = (
        "celery -A workers worker --include benchmarks.marks,benchmarks.bare --without-gossip --without-mingle --loglevel warning"
    )
    gevent = "python -m gevent.monkey --module"
    lines = {
        "web": (
            'gunicorn "benchmarks.web:create_app()" --config python:api.serving --worker-class gevent '
            f"--bind 127.0.0.1:{port} --no-control-socket --log-level warning"
        ),
        "tools": f"{worker} --hostname tools@%h --pool prefork --concurrency {tools} --queues tools",
        "sweeps": f"{gevent} {worker} --hostname sweeps@%h --pool gevent --concurrency 10 --queues sweeps",
        "beat": "celery -A workers beat --scheduler workers.sweeps.scheduler:Scheduler --loglevel warning",
    }
    for n in range(turns):
        lines[f"turns{n}"] = f"{gevent} {worker} --hostname turns{n}@%h --pool gevent --concurrency {in_flight} --queues turns"
    return lines


def answers(url: str) -> bool:
    """Return True if the API at this address is ready."""
    with contextlib.suppress(httpx2.HTTPError):
        return httpx2.get(f"{url}/readyz", trust_env=False).is_success
    return False


def _key(env: dict[str, str]) -> str:
    program = """
from models.database import ids
from models.workspace.api_key import SCOPES, ApiKey, NewKey
from models.database.transactions import transaction
from models.workspace.row import Workspace
workspace = ids.new("wrkspc")
with transaction(workspace) as db:
    Workspace.create(db, "Bench")
    print(ApiKey.create(db, NewKey("bench", scopes=frozenset(SCOPES)))[1])
"""
    process = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    time.sleep(1)  # the workers that were started last are ready then
    return process.stdout.strip()
