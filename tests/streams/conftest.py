"""Fixtures of the tests of slow readers: an API server that soon cuts a client that does not read."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from doors.served import Caller, key, served
from own_database import DatabaseUrls
from rows.stage import Stage


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The API server's log file."""
    return tmp_path_factory.mktemp("streams") / "log"


@pytest.fixture(scope="module")
def api(database_urls: object, redis_url: str, log: Path) -> Iterator[str]:
    """The URL of an API server that cuts a client after 1.5 s without reading."""
    with served(log, ASSENT_STREAM_POLL_SECONDS="0.2", ASSENT_STREAM_WRITE_SECONDS="1.5") as url:
        yield url


@pytest.fixture
def caller(api: str, stage: Stage) -> Iterator[Caller]:
    """A client of the stage's workspace, with every scope."""
    with Caller(api, key(stage)) as client:
        yield client


@pytest.fixture
def outdated(stage: Stage, database_urls: DatabaseUrls) -> None:
    """Give the planner outdated statistics, of a time when all sessions were small, as before the next ANALYZE."""
    for _ in range(60):
        stage.message(stage.session(), "Hello.")
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute("VACUUM ANALYZE event")
