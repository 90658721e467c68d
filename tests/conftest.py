"""Fixtures of all tests: a migrated database per test process, a Redis database per test process, and a clock that tests move.

Postgres and Redis run once per test run (tests/servers.py), started when the first test asks for them. Each pytest-xdist worker has
its own database, made from a migrated template, and its own Redis database number.
"""

import fcntl
import json
import os
import shutil
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
import scheduling
import warm
from environment import isolate
from own_database import Cleaner, Clock, DatabaseUrls, create_database, make_url

if TYPE_CHECKING:
    import execnet
    from doors.browser import Shared
    from flask import Flask
    from playwright.sync_api import Browser
    from rows.stage import Stage

RUN = "ASSENT_TEST_RUN"
"""Environment variable: the run's folder, made by pytest's main process and known to all of its workers."""


def pytest_configure(config: pytest.Config) -> None:
    """Name the run's folder. Workers of pytest-xdist inherit the name."""
    # A shell starts a command with `&` so that it ignores SIGINT, and child processes would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Images often set this variable. Each of the hundreds of processes of a run would then compile all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    isolate()
    examples = int(os.environ.get("ASSENT_FUZZ_EXAMPLES") or 50)
    hypothesis.settings.register_profile("assent", deadline=None, max_examples=examples)  # a busy machine is not the code's fault
    hypothesis.settings.load_profile("assent")
    if not hasattr(config, "workerinput"):
        os.environ[RUN] = f"{tempfile.mkdtemp(prefix='assent-test-')}:{os.getpid()}"


def pytest_xdist_setupnodes(config: pytest.Config, specs: "list[execnet.XSpec]") -> None:
    """Start the workers of pytest-xdist as forks of a process that has collected the tests (tests/warm.py)."""
    start_servers()  # meanwhile
    if hasattr(os, "pidfd_open"):
        os.environ[warm.PATHS] = json.dumps(config.args)
        if config.args == config.getini("testpaths"):  # tests of each kind will run: meanwhile the others can import
            for kind in warm.PACKAGES:
                warm.begin(kind)
        for spec in specs:
            spec.python = f"{sys.executable} -I -S {Path(__file__).with_name('warm.py')}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Pause the garbage collector while pytest collects the tests: few objects end there, and the pause halves the CPU time."""
    from models.operate import garbage_collection

    garbage_collection.pause()
    try:
        return (yield)
    finally:
        garbage_collection.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest parts. Skip the slow tests, unless `-m` names them."""
    items.sort(key=scheduling.place)
    for item in items:
        if item.get_closest_marker("slow") and "slow" not in config.option.markexpr:
            item.add_marker(pytest.mark.skip(reason="slow: make test ARGS='-m slow'"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Return the scheduler of `make test`; None for that of another `--dist`."""
    return scheduling.Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the run's servers, if a test started them."""
    if hasattr(config, "workerinput"):
        return
    run = Path(os.environ.pop(RUN).rpartition(":")[0])
    pid = run / "pid"
    if not pid.exists():
        shutil.rmtree(run)
        return
    try:
        server = psutil.Process(int(pid.read_text()))
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    except psutil.NoSuchProcess:
        pass


@pytest.fixture(scope="session")
def servers() -> dict[str, str]:
    """Start the run's servers unless they run. Return the URLs `postgres` (superuser), `owner`, `app`, `system` and `redis`."""
    start_servers()
    run = Path(os.environ[RUN].rpartition(":")[0])
    _wait_for(run / "servers.json", int((run / "pid").read_text()))
    urls: dict[str, str] = json.loads((run / "servers.json").read_text())
    from workers.celery import app

    # Sweeps that tests call send the events of lost tasks. At the default address, where nothing listens, each event waits for 6 s.
    app.conf.update(broker_url=urls["redis"])
    return urls


def start_servers() -> None:
    """Start the run's servers unless another process of the run has started them. Does not wait for them."""
    folder, _, pytest_pid = os.environ[RUN].rpartition(":")
    run = Path(folder)
    with (run / "lock").open("w") as lock, (run / "log").open("ab") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (run / "pid").exists():
            command = [sys.executable, str(Path(__file__).with_name("servers.py")), folder, pytest_pid]
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
            (run / "pid").write_text(str(process.pid))
            process.returncode = 0  # suppresses Popen's warning that the process still runs


def _wait_for(file: Path, pid: int) -> None:
    from crashes.processes import lives

    deadline = time.monotonic() + 110  # below the time limit of a test
    while not file.exists():
        if not lives(pid) or time.monotonic() > deadline:
            log = file.with_name("log")
            pytest.exit(f"the test servers did not start: see {log}: {log.read_text()[-3000:]}", returncode=3)
        time.sleep(0.02)


@pytest.fixture(scope="session")
def database_urls(servers: dict[str, str], worker_number: int) -> Iterator[DatabaseUrls]:
    """The migrated database of this test process. The environment and `settings()` point to it."""
    from models.database import encryption

    name = f"assent_test_{worker_number}"
    create_database(servers["postgres"], name)
    urls = DatabaseUrls(*(make_url(servers[role], name) for role in ("postgres", "owner", "app", "system")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", urls.app)
        patch.setenv("DATABASE_SYSTEM_URL", urls.system)
        patch.setenv("DATABASE_OWNER_URL", urls.owner)
        patch.setenv("ASSENT_ENVIRONMENT", "development")  # in production no process may hold all three URLs
        for reader in ("DELIVER", "TURNS", "ARCHIVE"):
            private, public = encryption.new_keys()
            patch.setenv(f"ASSENT_{reader}_PUBLIC_KEY", public)
            patch.setenv(f"ASSENT_{reader}_PRIVATE_KEYS", private)
        patch.setenv("ASSENT_SEAL_SECONDS", "86400")  # a server that outlives its test must not seal another test's audit
        _forget_settings()
        yield urls
    _forget_settings()


@pytest.fixture(scope="session")
def redis_urls(servers: dict[str, str], worker_number: int) -> list[str]:
    """The Redis databases of this test process: for most tests, for the worker that crashes, and for other workers of a test."""
    return [f"{servers['redis'].rpartition('/')[0]}/{1 + 3 * worker_number + number}" for number in range(3)]


@pytest.fixture(scope="session")
def redis_url(redis_urls: list[str]) -> Iterator[str]:
    """The URL of this test process's Redis database. The environment and `settings()` point to it."""
    from workers import enqueue

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDIS_URL", redis_urls[0])
        _forget_settings()
        enqueue.publisher.cache_clear()  # a test that needs no Redis may have made it, for the address that is the default
        yield redis_urls[0]
    _forget_settings()


@pytest.fixture(scope="session")
def private_key() -> str:
    """The private key that signs the audit's seals."""
    from models.audit import seal_key

    return seal_key.make()


@pytest.fixture(scope="session")
def api(private_key: str, database_urls: DatabaseUrls, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API server. Its settings are the defaults, except:

    Streams poll the database every 0.2 s, so that tests are quick. Attempts to sign in have no limit. The audit's public key and
    the secret of the fake Slack are set.
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
    """The API's Flask app, in this process."""
    from api import create_app

    return create_app()


@pytest.fixture(scope="session")
def shared_browser() -> "Iterator[Shared]":
    """The Chromium of this test process."""
    from doors.browser import shared_chromium

    with shared_chromium() as shared:
        yield shared


@pytest.fixture(scope="module")
def browser(shared_browser: "Shared") -> "Iterator[Browser]":
    """Chromium. The scope is a module: meanwhile nothing else in the process can have an event loop."""
    with shared_browser.used() as browser:
        yield browser


@pytest.fixture(scope="session")
def worker_number() -> int:
    """The number of this pytest-xdist worker, from 0."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.fixture(autouse=True)
def own_settings() -> Iterator[None]:
    """Clear the cached settings once the test's environment variables are undone.

    This fixture ends last, because a thread of this process, such as the renewal of leases, may read settings while others end.
    """
    from models.settings import settings

    before = settings()
    yield
    if not settings.cache_info().currsize or settings() is not before:
        settings.cache_clear()
        settings()


@pytest.fixture
def clean_database(database_urls: DatabaseUrls, cleaner: Cleaner) -> DatabaseUrls:
    """The database as the migrations left it. Cleaned before the test, so that the rows of a failed test can be inspected."""
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
    """The cleaner of the test process's database."""
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        yield Cleaner(db)


@pytest.fixture(scope="session")
def owner_connection(database_urls: DatabaseUrls) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A connection with the role `owner`."""
    with psycopg.connect(database_urls.owner, autocommit=True) as db:
        yield db


@pytest.fixture
def clock(owner_connection: "psycopg.Connection[tuple[object, ...]]") -> Iterator[Clock]:
    """The database's clock. The test may move it; the fixture resets it."""
    movable = Clock(owner_connection)
    yield movable
    movable.reset()


def _forget_settings() -> None:
    from models.database import transactions as db
    from models.settings import settings

    settings.cache_clear()
    db.dispose()
