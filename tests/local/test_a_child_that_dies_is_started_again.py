"""A child that dies is started again, after a pause that grows, and its new pid is reported."""

import io
import os
import signal

import pytest
from crashes.processes import lives, wait_for
from local.conftest import NewChild

from deploy.folder import CannotStart
from deploy.supervisor import Stopped, Supervisor, next_pause

SLEEP = "import time; print('awake', flush=True); time.sleep(600)"


def test_a_killed_child_is_back_under_a_new_pid(supervisor: Supervisor, new_child: NewChild) -> None:
    reports: list[dict[str, int]] = []
    supervisor.on_change = lambda: reports.append(supervisor.pids)
    supervisor.start(new_child("web", SLEEP))
    wait_for("the child runs", lambda: supervisor.pids)
    first = supervisor.pids["web"]

    os.kill(first, signal.SIGKILL)

    wait_for("the child is back", lambda: supervisor.pids.get("web", first) != first)
    wait_for("both starts are reported", lambda: len(reports) == 2)
    assert [pids["web"] for pids in reports] == [first, supervisor.pids["web"]]


def test_the_pid_is_that_of_the_process_itself(supervisor: Supervisor, new_child: NewChild, output: io.StringIO) -> None:
    supervisor.start(new_child("web", "import os, time; print('pid', os.getpid()); time.sleep(600)"))
    wait_for("the child prints", lambda: "pid " in output.getvalue())
    assert f"pid {supervisor.pids['web']}" in output.getvalue()


def test_a_restart_ends_the_processes_that_the_dead_child_left(
    supervisor: Supervisor, new_child: NewChild, output: io.StringIO
) -> None:
    supervisor.start(new_child("tools", "import os, time; os.fork(); os.write(1, b'here %d\\n' % os.getpid()); time.sleep(600)"))
    wait_for("both processes print", lambda: output.getvalue().count("here") == 2)
    pids = [int(line.split()[-1]) for line in output.getvalue().splitlines() if "here" in line]
    first = supervisor.pids["tools"]

    os.kill(first, signal.SIGKILL)

    wait_for("both processes end", lambda: not any(lives(pid) for pid in pids))
    wait_for("the child is back", lambda: supervisor.pids.get("tools", first) != first)


def test_the_pause_grows_while_a_child_keeps_dying_and_not_after_it_lived() -> None:
    pauses = [0.0]
    for _ in range(10):
        pauses.append(next_pause(pauses[-1], lived=1))
    assert pauses == [0, 0.25, 0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert next_pause(30, lived=31) == 0.25


def test_a_child_that_keeps_dying_at_start_is_one_clear_line(supervisor: Supervisor, new_child: NewChild) -> None:
    supervisor.start(new_child("web", "raise SystemExit(3)"))
    with pytest.raises(CannotStart, match="web keeps ending"):
        supervisor.wait_for("the API", lambda: False, 20)


def test_the_output_of_a_quiet_child_is_printed_when_it_dies(
    supervisor: Supervisor, new_child: NewChild, output: io.StringIO
) -> None:
    supervisor.start(new_child("postgres", "print('the disk is full'); raise SystemExit(1)", quiet=True))
    wait_for("its end is reported", lambda: "postgres ended with 1" in output.getvalue())
    wait_for("its last output is printed", lambda: "the disk is full" in output.getvalue())


def test_a_request_to_stop_ends_a_start_that_still_waits(supervisor: Supervisor) -> None:
    supervisor.ending.set()
    with pytest.raises(Stopped):
        supervisor.wait_for("the API", lambda: False, 20)


def test_output_is_prefixed_with_the_name(supervisor: Supervisor, new_child: NewChild, output: io.StringIO) -> None:
    supervisor.start(new_child("turns", SLEEP))
    wait_for("the child prints", lambda: "awake" in output.getvalue())
    assert "turns    | awake" in output.getvalue()
