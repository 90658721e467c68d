"""When a worker ends in any way, the servers that it started end too, with all processes that the servers started."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
import warm
from mcp_servers.conftest import PROGRAM, Caller, is_alive, text, wait_for

from workers.tools.mcp import connections

WORKER = """
import sys, time
sys.path.insert(0, {here!r})
from mcp_servers.conftest import Caller, SMALL
from workers.tools.mcp import connections
{body}
"""


def worker(folder: Path, body: str) -> warm.Process:
    program = WORKER.format(here=str(PROGRAM.parents[1]), body=body)
    with (folder / "log").open("wb") as log:
        return warm.start([sys.executable, "-c", program], dict(os.environ), log)


def read(file: Path) -> int:
    wait_for(lambda: file.exists() and file.read_text(), 60)
    return int(file.read_text())


@pytest.mark.crash
def test_a_worker_that_is_killed_takes_server_and_grandchildren_along_though_a_fork_of_it_lives_on(tmp_path: Path) -> None:
    started, below, fork = tmp_path / "started", tmp_path / "below", tmp_path / "fork"
    body = f"""
import os
from pathlib import Path
Caller(SMALL).call("parent", file={str(below)!r})
if os.fork() == 0:
    Path({str(fork)!r}).write_text(str(os.getpid()))
    time.sleep(600)
Caller(SMALL).call("stay", file={str(started)!r})
"""
    process = worker(tmp_path, body)
    server, grandchild, other = read(started), read(below), read(fork)
    assert is_alive(server)
    assert is_alive(grandchild)
    process.kill()
    process.wait()
    wait_for(lambda: not is_alive(server) and not is_alive(grandchild))
    assert is_alive(other)
    os.kill(other, signal.SIGKILL)


@pytest.mark.crash
def test_a_worker_that_ends_by_itself_does_too(tmp_path: Path) -> None:
    below = tmp_path / "below"
    process = worker(tmp_path, f'Caller(SMALL).call("parent", file={str(below)!r})')
    process.wait(60)
    wait_for(lambda: not is_alive(read(below)))


def test_what_a_server_started_ends_with_its_connection(small: Caller, tmp_path: Path) -> None:
    small.call("parent", file=str(tmp_path / "below"))
    grandchild = read(tmp_path / "below")
    connections.close_all()
    assert not is_alive(grandchild)


def test_a_launcher_that_is_killed_takes_its_server_along(small: Caller) -> None:
    server = int(text(small.call("pid")))
    launcher = psutil.Process(server).parent()
    assert launcher is not None
    launcher.kill()
    wait_for(lambda: not is_alive(server))
