"""However `assent up` ends, no process is left running, or the next start ends it."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from crashes.processes import lives, wait_for
from local.conftest import NewChild

from deploy.folder import MARK, Folder, end_leftovers
from deploy.supervisor import Supervisor

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


def test_a_child_that_ignores_sigterm_is_killed_in_time(supervisor: Supervisor, new_child: NewChild, output: io.StringIO) -> None:
    supervisor.start(new_child("deaf", STUBBORN, stop_seconds=0.5))
    wait_for("the child runs", lambda: "deaf     | deaf" in output.getvalue())
    began = time.monotonic()
    supervisor.stop()
    assert 0.5 <= time.monotonic() - began < 3
    assert not supervisor.pids


def test_a_second_request_to_stop_kills_at_once(supervisor: Supervisor, new_child: NewChild, output: io.StringIO) -> None:
    supervisor.start(new_child("deaf", STUBBORN, stop_seconds=60))
    wait_for("the child runs", lambda: "deaf     | deaf" in output.getvalue())
    began = time.monotonic()
    supervisor.hurry.set()
    supervisor.stop()
    assert time.monotonic() - began < 3


def test_servers_end_after_the_processes_that_use_them(supervisor: Supervisor, new_child: NewChild, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    supervisor.start(new_child("postgres", SLOW_END.format(0, log, "p"), last=True))
    supervisor.start(new_child("web", SLOW_END.format(0.3, log, "w")))
    wait_for("both run", lambda: Path(log + "p").exists() and Path(log + "w").exists())
    supervisor.stop()
    assert Path(log).read_text() == "wp"


def test_a_stop_ends_grandchildren_and_strays_too(supervisor: Supervisor, new_child: NewChild, output: io.StringIO) -> None:
    supervisor.start(new_child("tools", FAMILY))
    wait_for("the child runs", lambda: "family" in output.getvalue())
    pids = [int(word) for word in output.getvalue().split()[-2:]]
    assert all(lives(pid) for pid in pids)
    supervisor.stop()
    wait_for("all processes end", lambda: not any(lives(pid) for pid in pids))


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
    processes: list[subprocess.Popen[str]] = []

    def start(program: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-u", "-c", ALONE, str(tmp_path / "data"), program]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


Alone = Callable[[str], "subprocess.Popen[str]"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start ends what was left")
@pytest.mark.crash
def test_children_die_with_a_killed_supervisor(alone: Alone) -> None:
    process = alone("import os, time; print('pid', os.getpid()); time.sleep(600)")
    assert process.stdout
    pid = int(process.stdout.readline().split()[-1])
    process.kill()
    wait_for("the child ends", lambda: not lives(pid), 5)


@pytest.mark.crash
def test_the_next_start_ends_what_a_killed_one_left_behind(alone: Alone, tmp_path: Path) -> None:
    process = alone(FAMILY)
    assert process.stdout
    pids = [int(word) for word in process.stdout.readline().split()[-2:]]
    process.kill()
    process.wait()
    assert all(lives(pid) for pid in pids)

    with Folder(tmp_path / "data") as folder:
        assert end_leftovers(folder.path) >= 2
    wait_for("all processes end", lambda: not any(lives(pid) for pid in pids))


def test_processes_of_another_folder_are_left_alone(folder: Folder, tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", SLEEP], env={**os.environ, MARK: str(tmp_path / "other")})
    try:
        end_leftovers(folder.path)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(alone: Alone, number: signal.Signals) -> None:
    process = alone("import os, time; print('pid', os.getpid()); time.sleep(600)")
    assert process.stdout
    pid = int(process.stdout.readline().split()[-1])
    process.send_signal(number)
    assert process.wait(15) == 0
    assert not psutil.pid_exists(pid)
