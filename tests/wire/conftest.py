"""The official SDK, unmodified and strict, against the API as it is served; the workers' part is played by hand."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import environment
import pytest
from anthropic import Anthropic
from doors.served import key
from rows.stage import Stage

NPM = Path(__file__).parent / "npm"
INSTALL_SECONDS = 90


@pytest.fixture
def sdk(api: str, stage: Stage) -> Iterator[Anthropic]:
    """The SDK's client: an answer that does not hold under its types raises."""
    with Anthropic(api_key=key(stage), base_url=api, max_retries=0, _strict_response_validation=True) as client:
        yield client


@pytest.fixture(scope="session")
def npm_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the npm SDK, installed as the lock file has it; npm's own cache makes it quick the second time."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("NOT TESTED: the npm SDK, as node or npm is missing here")
    folder = tmp_path_factory.mktemp("npm")
    shutil.copytree(NPM, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    command = [npm, "ci", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"]
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, timeout=INSTALL_SECONDS, env=environment.of_installers()
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (error.stderr or b"").decode()[-500:]
        pytest.skip(f"NOT TESTED: the npm SDK, as the registry does not give it: {said}")
    return folder
