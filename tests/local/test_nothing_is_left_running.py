"""However it ends, nothing is left running, or the next start ends it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from deploy.folder import MARK, Folder, end_leftovers
from deploy.supervisor import Child, Supervisor

Make = Callable[..., Child]
SLEEP = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
FAMILY = """
import os, subprocess, sys, time
quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], **quiet)
stray = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True, **quiet)
print('family', child.pid, stray.pid, flush=True)
time.sleep(600)
"""

SLOW_END = """
import signal, sys, time, pathlib
def end(*_):
    time.sleep({0})
    open({1!r}, 'a').write({2!r})
    sys.exit()
signal.signal(signal.SIGTERM, end)
pathlib.Path({1!r} + {2!r}).touch()
time.sleep(600)
"""


def test_a_child_that_ignores_sigterm_is_killed_in_time(
    supervisor: Supervisor, child: Make, output: object, until: Callable[..., None]
) -> None:
    supervisor.start(child("deaf", STUBBORN, stop_seconds=0.5))
    until(lambda: "deaf     | deaf" in output.getvalue())  # type: ignore[attr-defined]
    began = time.monotonic()
    supervisor.stop()
    assert 0.5 <= time.monotonic() - began < 3
    assert not supervisor.pids


def test_asking_twice_does_not_wait(supervisor: Supervisor, child: Make, output: object, until: Callable[..., None]) -> None:
    supervisor.start(child("deaf", STUBBORN, stop_seconds=60))
    until(lambda: "deaf     | deaf" in output.getvalue())  # type: ignore[attr-defined]
    began = time.monotonic()
    supervisor.hurry.set()
    supervisor.stop()
    assert time.monotonic() - began < 3


def test_the_limits_of_a_stop_add_up_to_less_than_15_seconds() -> None:
    ordinary = Child("web", "true", {})
    last = [3.0]  # of Postgres and Redis, which are asked at the same time
    assert ordinary.stop_seconds + max(last) + 0.5 < 15


def test_the_servers_end_after_those_who_use_them(
    supervisor: Supervisor, child: Make, until: Callable[..., None], tmp_path: Path
) -> None:
    log = str(tmp_path / "log")
    supervisor.start(child("postgres", SLOW_END.format(0, log, "p"), last=True))
    supervisor.start(child("web", SLOW_END.format(0.3, log, "w")))
    until(lambda: Path(log + "p").exists() and Path(log + "w").exists())
    supervisor.stop()
    assert Path(log).read_text() == "wp"


def test_a_stop_ends_grandchildren_and_strays_too(
    supervisor: Supervisor, child: Make, output: object, until: Callable[..., None], is_gone: Callable[[int], bool]
) -> None:
    supervisor.start(child("tools", FAMILY))
    until(lambda: "family" in output.getvalue())  # type: ignore[attr-defined]
    pids = [int(word) for word in output.getvalue().split()[-2:]]  # type: ignore[attr-defined]
    assert not any(is_gone(pid) for pid in pids)
    supervisor.stop()
    until(lambda: all(is_gone(pid) for pid in pids))


ALONE = """
import os, sys
from pathlib import Path
from deploy.folder import MARK, Folder
from deploy.supervisor import Child, Supervisor, shell
with Folder(Path(sys.argv[1])) as folder:
    supervisor = Supervisor(Path.cwd())
    supervisor.listen()
    line = shell(sys.executable, '-u', '-c', sys.argv[2])
    supervisor.start(Child('tools', line, {MARK: str(folder.path), 'PATH': os.environ['PATH']}))
    supervisor.wait()
    supervisor.stop()
"""


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """Starts a supervisor in a process of its own, with one child."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str) -> "subprocess.Popen[str]":
        words = [sys.executable, "-u", "-c", ALONE, str(tmp_path / "data"), program]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


Alone = Callable[[str], "subprocess.Popen[str]"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start ends what was left")
@pytest.mark.crash
def test_children_die_with_a_killed_supervisor(alone: Alone, until: Callable[..., None], is_gone: Callable[[int], bool]) -> None:
    process = alone("import os, time; print('pid', os.getpid()); time.sleep(600)")
    assert process.stdout
    pid = int(process.stdout.readline().split()[-1])
    process.kill()
    until(lambda: is_gone(pid), 5)


@pytest.mark.crash
def test_the_next_start_ends_what_a_killed_one_left_behind(
    alone: Alone, tmp_path: Path, until: Callable[..., None], is_gone: Callable[[int], bool]
) -> None:
    process = alone(FAMILY)
    assert process.stdout
    pids = [int(word) for word in process.stdout.readline().split()[-2:]]
    process.kill()
    process.wait()
    assert not any(is_gone(pid) for pid in pids)

    with Folder(tmp_path / "data") as folder:
        assert end_leftovers(folder.path) >= 2
    until(lambda: all(is_gone(pid) for pid in pids))


def test_processes_of_another_folder_are_left_alone(folder: Folder, tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", SLEEP], env={**os.environ, MARK: str(tmp_path / "other")})
    try:
        end_leftovers(folder.path)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(alone: Alone, number: signal.Signals, is_gone: Callable[[int], bool]) -> None:
    process = alone("import os, time; print('pid', os.getpid()); time.sleep(600)")
    assert process.stdout
    pid = int(process.stdout.readline().split()[-1])
    process.send_signal(number)
    assert process.wait(15) == 0
    assert is_gone(pid)
    assert not psutil.pid_exists(pid)
