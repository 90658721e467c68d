"""Real processes: a stand-in model, and a worker that dies at armed boundaries. They end with the tests of this folder.

The worker has a Redis database of its own, so that no test gets the messages of another.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from crashes.effects import TOOLSET, Ledger, announce_effects
from crashes.hints import forget, use_redis
from crashes.journey import Armed, Journey
from crashes.processes import CRASHING, READY, Process, mcp_server, running, stand_in
from mcp_servers.lying import Liar
from own_database import Clock, DatabaseUrls
from rows.stage import Stage

from models.audit import seal_key, signed_heads
from models.database import transactions

KEY = "any-key-will-do"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests in this folder kill processes."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.crash)


@pytest.fixture(scope="package")
def crash_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs, workdirs, the file of armed crash points."""
    return tmp_path_factory.mktemp("crashes")


@pytest.fixture(scope="package")
def model_url(crash_folder: Path) -> Iterator[str]:
    """The stand-in model."""
    with stand_in(crash_folder) as url:
        yield url


@pytest.fixture(scope="package")
def mcp_url(crash_folder: Path) -> Iterator[str]:
    """An MCP server's address."""
    with mcp_server(crash_folder) as url:
        yield url


@pytest.fixture
def liar() -> Iterator[Liar]:
    """An MCP server of the test's own, which keeps the requests."""
    with Liar() as server:
        server.on_call(lambda request: request.result({"content": [{"type": "text", "text": "acted"}]}))
        yield server


@pytest.fixture(scope="package")
def audit_key() -> str:
    """The key with which the worker signs its seals."""
    return seal_key.make()


@pytest.fixture(scope="package")
def audit_heads(crash_folder: Path) -> Path:
    """The file of the heads that the worker has signed."""
    file = crash_folder / "audit.heads"
    signed_heads.make(file)
    return file


def providers(folder: Path, model_url: str) -> Path:
    """The registry: the stand-in serves every model, `llama-*` over OpenAI's wire. `small-*` have a window of 12,000 tokens."""
    key = {"api_key_env": "ANTHROPIC_API_KEY"}
    llama = key | {"name": "llama", "kind": "openai", "base_url": f"{model_url}/v1", "models": ["llama-*"]}
    entry = key | {"name": "anthropic", "kind": "anthropic", "base_url": model_url, "models": ["*"]}
    file = folder / "providers.json"
    file.write_text(json.dumps({"providers": [llama, entry | {"windows": {"small-*": 12_000}}]}))
    return file


@pytest.fixture(scope="package")
def worker_env(
    crash_folder: Path, model_url: str, database_urls: DatabaseUrls, audit_key: str, audit_heads: Path
) -> dict[str, str]:
    """The environment of every worker, without its Redis."""
    return {
        "ANTHROPIC_API_KEY": KEY,
        "ASSENT_PROVIDERS": str(providers(crash_folder, model_url)),
        "DATABASE_URL": database_urls.app,
        "DATABASE_SYSTEM_URL": database_urls.system,
        "DATABASE_OWNER_URL": "",
        "ASSENT_SHELL": "bare",
        "ASSENT_SHELL_MEMORY_BYTES": str(64 << 20),
        "ASSENT_ENVIRONMENT": "development",
        "ASSENT_AUDIT_KEY": audit_key,
        "ASSENT_AUDIT_HEADS_FILE": str(audit_heads),
        "ASSENT_WORKDIR_ROOT": str(crash_folder / "workdirs"),
        "ASSENT_WATCH_SECONDS": "0.1",
        "ASSENT_BACKOFF_SECONDS": "0.02",
        "ASSENT_MODEL_ATTEMPTS": "2",
        "ASSENT_HEARTBEAT_SECONDS": "0.5",
        "ASSENT_ALLOWED_PRIVATE_HOSTS": "127.0.0.1 localhost",
        "ASSENT_TOOLSETS": TOOLSET,
        "ASSENT_TEST_EFFECTS": str(crash_folder / "effects"),
        "ASSENT_TEST_CRASHES": str(crash_folder / "armed"),
        "ASSENT_TEST_UNLISTED": str(crash_folder / "unlisted"),
    }


@pytest.fixture(scope="package")
def crash_redis(redis_urls: list[str]) -> str:
    """The shared worker's Redis database."""
    return redis_urls[1]


@pytest.fixture(scope="package")
def private_redis(redis_urls: list[str]) -> str:
    """The Redis database for tests that start and kill workers of their own."""
    return redis_urls[2]


@pytest.fixture(scope="package")
def crashing_worker(crash_folder: Path, worker_env: dict[str, str], crash_redis: str) -> Iterator[Process]:
    """A worker on all queues, one process of which dies at each boundary that a test arms."""
    with running(CRASHING, worker_env | {"REDIS_URL": crash_redis}, crash_folder / "worker.log") as worker:
        worker.wait_for_output(READY)
        yield worker


@pytest.fixture
def armed(crash_folder: Path) -> Iterator[Armed]:
    """The file of armed crash points, empty."""
    points = Armed(crash_folder / "armed")
    points.at()
    yield points
    points.at()


@pytest.fixture
def hints_go_to(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Has this process publish its hints, as the API does. `use_redis` sets the address."""
    from workers import enqueue

    monkeypatch.setattr(transactions, "_send", enqueue.send)
    yield monkeypatch
    monkeypatch.undo()
    forget()


@pytest.fixture
def journey(
    clean_database: DatabaseUrls,
    clock: Clock,
    armed: Armed,
    crashing_worker: Process,
    crash_redis: str,
    crash_folder: Path,
    hints_go_to: pytest.MonkeyPatch,
) -> Journey:
    """A session that the crashing worker serves."""
    use_redis(hints_go_to, crash_redis)
    return Journey(Stage(), clock, armed, crash_folder / "workdirs")


@pytest.fixture
def ledger(clean_database: DatabaseUrls, crash_folder: Path) -> Ledger:
    """The ledger of the toolset's functions. The toolset is announced."""
    announce_effects()
    return Ledger(crash_folder / "effects")
