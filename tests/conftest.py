"""What tests stand on: a database of their own with the schema, a Redis database of their own, a clock that they move.

Postgres and Redis run once per test run (tests/servers.py), started when the first test asks for them. Each pytest-xdist worker has
its own database, made from a migrated template, and its own Redis database number.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import psutil
import psycopg
import pytest
import redis
from environment import isolate
from own_database import Cleaner, Clock, DatabaseUrls, create_database, make_url

if TYPE_CHECKING:
    from flask import Flask
    from rows.stage import Stage

RUN = "ASSENT_TEST_RUN"
"""Environment variable: the run's folder, made by pytest's main process and known to all of its workers."""


def pytest_configure(config: pytest.Config) -> None:
    """Name the run's folder. Workers of pytest-xdist inherit the name.

    Behind a shell's `&` Ctrl-C is ignored, and would be by all that tests start.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Images often set this variable. Each of the hundreds of processes of a run would then compile all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    isolate()
    hypothesis.settings.register_profile("assent", deadline=None)  # a busy machine is no fault of the code's
    hypothesis.settings.load_profile("assent")
    if not hasattr(config, "workerinput"):
        os.environ[RUN] = f"{tempfile.mkdtemp(prefix='assent-test-')}:{os.getpid()}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while the tests are collected, which makes few objects that end, and halves the CPU of it."""
    from models import garbage_collection

    garbage_collection.pause()
    try:
        return (yield)
    finally:
        garbage_collection.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the slow tests, unless they are asked for."""
    for item in items:
        if item.get_closest_marker("slow") and "slow" not in config.option.markexpr:
            item.add_marker(pytest.mark.skip(reason="slow: make test ARGS='-m slow'"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the run's servers, if any test needed them."""
    if hasattr(config, "workerinput"):
        return
    run = Path(os.environ.pop(RUN).rpartition(":")[0])
    pid = run / "pid"
    if not pid.exists():
        run.rmdir()
        return
    try:
        server = psutil.Process(int(pid.read_text()))
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    except psutil.NoSuchProcess:
        pass


@pytest.fixture(scope="session")
def servers() -> dict[str, str]:
    """The run's servers: URLs of `postgres` (superuser), `owner`, `app` and `system` for the template, and of `redis`."""
    folder, _, pytest_pid = os.environ[RUN].rpartition(":")
    run = Path(folder)
    with (run / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (run / "pid").exists():
            log = (run / "log").open("wb")
            words = [sys.executable, str(Path(__file__).with_name("servers.py")), folder, pytest_pid]
            process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
            log.close()
            (run / "pid").write_text(str(process.pid))
            _wait_for(run / "servers.json", process)
            process.returncode = 0  # it is left to itself: no warning that it still runs
        if not (run / "servers.json").exists():
            pytest.exit(f"the test servers did not start: see {run / 'log'}", returncode=3)
    found: dict[str, str] = json.loads((run / "servers.json").read_text())
    return found


def _wait_for(file: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 110  # below the time limit of a test
    while not file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            said = (file.parent / "log").read_text() if (file.parent / "log").exists() else "nothing"
            pytest.exit(f"the test servers did not start: {said[-3000:]}", returncode=3)
        time.sleep(0.02)


@pytest.fixture(scope="session")
def database_urls(servers: dict[str, str], worker_number: int) -> Iterator[DatabaseUrls]:
    """A migrated database of this test process's own. The environment and `settings()` point at it."""
    from models.database import encryption

    name = f"assent_test_{worker_number}"
    create_database(servers["postgres"], name)
    urls = DatabaseUrls(*(make_url(servers[role], name) for role in ("postgres", "owner", "app", "system")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", urls.app)
        patch.setenv("DATABASE_SYSTEM_URL", urls.system)
        patch.setenv("DATABASE_OWNER_URL", urls.owner)
        patch.setenv("ASSENT_ENVIRONMENT", "development")  # in production no process may hold all three URLs
        for reader in ("DELIVER", "TURNS"):
            private, public = encryption.new_keys()
            patch.setenv(f"ASSENT_{reader}_PUBLIC_KEY", public)
            patch.setenv(f"ASSENT_{reader}_PRIVATE_KEYS", private)
        patch.setenv("ASSENT_SEAL_SECONDS", "86400")  # houses that outlive their test add nothing to another test's audit
        _forget_settings()
        yield urls
    _forget_settings()


@pytest.fixture(scope="session")
def redis_url(servers: dict[str, str], worker_number: int) -> Iterator[str]:
    """A Redis database of this test process's own. The environment and `settings()` point at it."""
    url = servers["redis"].rpartition("/")[0] + f"/{1 + worker_number % 15}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDIS_URL", url)
        _forget_settings()
        yield url
    _forget_settings()


@pytest.fixture(scope="session")
def private_key() -> str:
    """The key that signs the audit's seals where a test asks for signatures."""
    from models.audit import seal_key

    return seal_key.make()


@pytest.fixture(scope="session")
def api(private_key: str, database_urls: DatabaseUrls, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API's address, with default settings. Streams poll the database often, so that no test waits for a tick.

    The API knows the public half of the audit's key and the secret of the tests' Slack. Attempts to sign in have no limit.
    """
    from doors.served import served
    from outbox.fake_slack import SECRET

    from models.audit import seal_key

    public = seal_key.read_private(private_key).public.text
    log = tmp_path_factory.mktemp("api") / "log"
    env = {"ASSENT_SIGN_IN_ATTEMPTS_PER_SECOND": "0", "ASSENT_AUDIT_PUBLIC_KEYS": public, "ASSENT_SLACK_SIGNING_SECRET": SECRET}
    with served(log, ASSENT_STREAM_POLL_SECONDS="0.2", **env) as url:
        yield url


@pytest.fixture(scope="session")
def flask_app(database_urls: DatabaseUrls, redis_url: str) -> "Flask":
    """The API in this process."""
    from api import create_app

    return create_app()


@pytest.fixture(scope="session")
def worker_number() -> int:
    """Which of pytest-xdist's workers this is, from 0."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.fixture(autouse=True)
def own_settings() -> Iterator[None]:
    """Forgets the settings of a test once its environment is undone. This ends last of all: a thread of this process, such as the
    one that renews leases, may read settings while other fixtures end."""
    from models.settings import settings

    before = settings()
    yield
    if not settings.cache_info().currsize or settings() is not before:
        settings.cache_clear()
        settings()


@pytest.fixture
def clean_database(database_urls: DatabaseUrls, cleaner: Cleaner) -> DatabaseUrls:
    """The database as the migrations left it. Cleaned before the test, so that a failed test's rows can be looked at."""
    cleaner.clean()
    return database_urls


@pytest.fixture
def stage(clean_database: DatabaseUrls) -> "Stage":
    """An empty workspace, with methods that play the parts of its workers and clients on rows."""
    from rows.stage import Stage  # imports all of models, which some folders' tests do without

    return Stage()


@pytest.fixture
def clean_redis(redis_url: str) -> str:
    """The Redis database, empty."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    return redis_url


@pytest.fixture(scope="session")
def cleaner(database_urls: DatabaseUrls) -> Iterator[Cleaner]:
    """Empties the test process's database."""
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        yield Cleaner(db)


@pytest.fixture(scope="session")
def owner_connection(database_urls: DatabaseUrls) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A connection of the schema's owner."""
    with psycopg.connect(database_urls.owner, autocommit=True) as db:
        yield db


@pytest.fixture
def clock(owner_connection: "psycopg.Connection[tuple[object, ...]]") -> Iterator[Clock]:
    """Moves the database's time; real time again after the test."""
    moved = Clock(owner_connection)
    yield moved
    moved.reset()


def _forget_settings() -> None:
    from models.database import transactions as db
    from models.settings import settings

    settings.cache_clear()
    db.dispose()
