"""Real workers and a real stand-in model, as processes that end with the test process, even after its kill -9."""

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import warm

TESTS = Path(__file__).parents[1]
MCP_SERVER = TESTS / "mcp_servers" / "server.py"
PACE = 0.02
LOOK_PACE = 0.1
"""Seconds between two looks at all rows of a session, each of which costs a dozen statements here and in Postgres."""
T = TypeVar("T")


def patched_early(words: list[str]) -> list[str]:
    """The command of a gevent worker, as the Procfile has it: gevent patches before Celery is imported."""
    python, _, *celery = words
    return [python, "-m", "gevent.monkey", "--module", *celery]


CELERY = [sys.executable, "-m", "celery", "-A", "workers", "worker", "-l", "INFO"]
WORKER = [*CELERY, "--without-gossip", "--without-mingle", "--without-heartbeat"]
LOADED = "workers.providers.anthropic,workers.tools.mcp.calling,workers.tools.mcp.listing,crashes.points"
CRASHING = [
    *WORKER,
    "--include",
    LOADED,
    "-P",
    "prefork",
    "-c",
    "3",
    "-Q",
    "turns,tools,sweeps",
    "--max-tasks-per-child",
    "1000000",
]
"""A worker of all queues. At a crash point one process of the pool dies, and the pool forks another; otherwise no process ends.

`LOADED` names what the main process imports before it forks. Each new process would otherwise import the model's SDK again.
"""
TURNS = [*patched_early(WORKER), "-P", "gevent", "-c", "20", "-Q", "turns,sweeps"]
TOOLS = [*WORKER, "-P", "prefork", "-c", "2", "-Q", "tools"]


def lives(pid: int) -> bool:
    """True if a process is there and is not a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(what: str, condition: Callable[[], T], seconds: float = 20) -> T:
    """Wait until `condition` returns something true. Returns that value, or fails after so many seconds."""
    start = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - start
        assert waited < seconds, f"{what}: not within {seconds} s"
        time.sleep(min(max(PACE, waited / 10), LOOK_PACE))  # a look may cost more CPU time than what it waits for
    return value


class Process:
    """One program with its children."""

    def __init__(self, words: list[str], env: dict[str, str], log: Path) -> None:
        self.words, self.env, self.log = words, env, log
        self.start()

    def start(self) -> None:
        """Start the program, for the first time or again."""
        with self.log.open("wb") as log:
            self.running = warm.start(self.words, {**os.environ, "PYTHONPATH": str(TESTS), **self.env}, log)

    def wait_for_output(self, pattern: str) -> "re.Match[str]":
        """Wait until the output has a match of the pattern. Returns the first one."""

        def search() -> "re.Match[str] | None":
            assert self.running.poll() is None, self.log.read_text()[-3000:]
            return re.search(pattern, self.log.read_text())

        return wait_for(f"{self.words[-1]} prints {pattern}", search, 60)

    @property
    def family(self) -> list[psutil.Process]:
        """The process and its descendants."""
        with contextlib.suppress(psutil.NoSuchProcess):
            mine = psutil.Process(self.running.pid)
            return [mine, *mine.children(recursive=True)]
        return []

    def kill(self) -> None:
        """kill -9 of the process and its children. Their own children must end by themselves."""
        mine = psutil.Process(self.running.pid)
        for process in [mine, *mine.children()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.running.wait()

    def stop(self) -> None:
        """kill -9 of the process and its descendants."""
        for process in self.family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.running.wait()


@contextlib.contextmanager
def running(words: list[str], env: dict[str, str], log: Path) -> Iterator[Process]:
    """Run a process until the block ends."""
    process = Process(words, env, log)
    try:
        yield process
    finally:
        process.stop()


@contextlib.contextmanager
def stand_in(folder: Path) -> Iterator[str]:
    """A stand-in model's address."""
    with running([sys.executable, "-m", "deploy.standin", "--port", "0"], {}, folder / "standin.log") as process:
        yield process.wait_for_output(r"ready on (http://\S+)")[1]


@contextlib.contextmanager
def mcp_server(folder: Path) -> Iterator[str]:
    """The URL of an MCP server over streamable HTTP."""
    port = folder / "mcp-port"
    with running([sys.executable, str(MCP_SERVER), "http", str(port)], {}, folder / "mcp.log"):
        yield f"http://127.0.0.1:{wait_for('the MCP server listens', lambda: port.exists() and port.read_text())}/mcp"


READY = r"\S+@\S+ ready\."
