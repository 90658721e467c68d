"""Supervisors with placeholder processes, and the command line against a served API."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner
from doors.served import Caller, key
from local.built import program_of_the_run, wheel_of_the_run
from local.flowers import running_flower
from rows.stage import Stage

from api.cli.main import main
from deploy.folder import MARK, Folder
from deploy.supervisor import Child, Supervisor, shell

NewChild = Callable[..., Child]
Assent = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A data folder, locked."""
    with Folder(tmp_path / "data") as folder:
        yield folder


@pytest.fixture
def output() -> io.StringIO:
    """The output of the supervisor."""
    return io.StringIO()


@pytest.fixture
def supervisor(tmp_path: Path, output: io.StringIO) -> Iterator[Supervisor]:
    """A supervisor whose children end with the test."""
    running = Supervisor(tmp_path, output=output)
    yield running
    running.hurry.set()
    running.stop()


@pytest.fixture
def env(folder: Folder) -> dict[str, str]:
    """The environment of a folder's children."""
    return {"PATH": os.environ["PATH"], MARK: str(folder.path)}


@pytest.fixture
def new_child(env: dict[str, str]) -> NewChild:
    """Makes a child out of a Python program: `new_child("name", "print(1)", stop_seconds=1)`."""

    def make(name: str, program: str, **more: object) -> Child:
        return Child(name, shell(sys.executable, "-u", "-c", program), env, **more)

    return make


@pytest.fixture
def caller(api: str, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """An HTTP client of the stage's workspace. The environment has the address and key, and PATH has `assent`."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    with Caller(api, key(stage)) as client:
        monkeypatch.setenv("ASSENT_URL", api)
        monkeypatch.setenv("ASSENT_API_KEY", client.headers["x-api-key"])
        yield client


@pytest.fixture
def assent(caller: Caller) -> Assent:
    """Runs a command with a key of the stage's workspace, and types `typed` into it. Returns the output."""

    def run(*words: str, typed: str = "", code: int = 0) -> str:
        result = CliRunner().invoke(main, words, input=typed, catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result.output

    return run


@pytest.fixture(scope="session")
def wheel() -> Path:
    """A wheel of this checkout."""
    return wheel_of_the_run()


@pytest.fixture(scope="session")
def program() -> Path:
    """The command `assent` in an environment with the wheel."""
    return program_of_the_run()


@pytest.fixture(scope="module")
def flower(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of the Procfile's Flower."""
    with running_flower(redis_url, tmp_path_factory.mktemp("flower") / "log") as client:
        yield client
