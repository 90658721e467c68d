"""Supervisors with placeholder processes, in folders of their own."""

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from deploy.folder import MARK, Folder
from deploy.supervisor import Child, Supervisor, shell


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A data folder, locked."""
    with Folder(tmp_path / "data") as taken:
        yield taken


@pytest.fixture
def output() -> io.StringIO:
    """What supervisors print."""
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
def child(env: dict[str, str]) -> Callable[..., Child]:
    """Makes a child out of a Python program: `child("name", "print(1)", stop_seconds=1)`."""

    def make(name: str, program: str, **more: object) -> Child:
        return Child(name, shell(sys.executable, "-u", "-c", program), env, **more)

    return make


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture(name="until")
def until_() -> Callable[..., None]:
    """`until(condition, seconds=20)`."""
    return until


@pytest.fixture(name="is_gone")
def is_gone_() -> Callable[[int], bool]:
    """`is_gone(pid)`."""
    return is_gone
