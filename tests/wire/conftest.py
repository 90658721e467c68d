"""The official SDK, unmodified and strict, against the API as it is served; the workers' part is played by hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from anthropic import Anthropic
from doors.served import key, served
from rows.stage import Stage


@pytest.fixture(scope="session")
def api(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API's address."""
    log: Path = tmp_path_factory.mktemp("api") / "log"
    with served(log, ASSENT_STREAM_POLL_SECONDS="0.2") as url:
        yield url


@pytest.fixture
def stage(clean_database: object) -> Stage:
    """A workspace, and the hands to play the workers' part in it."""
    return Stage()


@pytest.fixture
def sdk(api: str, stage: Stage) -> Iterator[Anthropic]:
    """The SDK's client: an answer that does not hold under its types raises."""
    with Anthropic(api_key=key(stage), base_url=api, max_retries=0, _strict_response_validation=True) as client:
        yield client
