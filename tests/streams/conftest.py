"""Nothing but the API and clients that do not read."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from doors.served import Caller, key, served
from own_database import DatabaseUrls
from rows.stage import Stage

WRITE_SECONDS = 1.5


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the API says."""
    return tmp_path_factory.mktemp("streams") / "log"


@pytest.fixture(scope="module")
def api(database_urls: object, redis_url: str, log: Path) -> Iterator[str]:
    """The API's address. It has little patience with clients that do not read."""
    with served(log, ASSENT_STREAM_POLL_SECONDS="0.2", ASSENT_STREAM_WRITE_SECONDS=str(WRITE_SECONDS)) as url:
        yield url


@pytest.fixture
def caller(api: str, stage: Stage) -> Iterator[Caller]:
    """A client of that workspace that may do everything."""
    with Caller(api, key(stage)) as client:
        yield client


@pytest.fixture
def outdated(stage: Stage, database_urls: DatabaseUrls) -> None:
    """The planner knows the events of a time when all sessions were small, as it does until the next ANALYZE."""
    for _ in range(60):
        stage.message(stage.session(), "Hello.")
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute("VACUUM ANALYZE event")
