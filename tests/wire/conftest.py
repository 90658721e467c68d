"""The official SDKs, unmodified and strict, against an API server. The tests play the workers' part."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import installing
import pytest
from anthropic import Anthropic
from doors.served import key
from rows.stage import Stage
from wire.proxy import Proxy
from wire.talking import Talk, talking

NPM = Path(__file__).parent / "npm"


@pytest.fixture
def sdk(api: str, stage: Stage) -> Iterator[Anthropic]:
    """The SDK's client. A response that does not fit the SDK's types raises."""
    with Anthropic(api_key=key(stage), base_url=api, max_retries=0, _strict_response_validation=True) as client:
        yield client


@pytest.fixture
def proxy(api: str) -> Iterator[Proxy]:
    """A proxy of the API whose connections can be cut."""
    running = Proxy(api)
    yield running
    running.close()


@pytest.fixture
def talk(api: str, stage: Stage) -> Iterator[Talk]:
    """An OpenAI client of an agent with the built-in tools, which ask."""
    with talking(api, stage) as client:
        yield client


@pytest.fixture(scope="session")
def npm_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the npm SDK in the locked version, and with the programs that use it."""
    folder = tmp_path_factory.mktemp("npm")
    shutil.copytree(NPM, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to(installing.from_npm("sdk-npm", NPM) / "node_modules")
    return folder
