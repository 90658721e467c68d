"""A child that dies is started again, after a pause that grows, and whoever wants to know its pid is told."""

import io
import os
import signal
from collections.abc import Callable

import pytest

from deploy.folder import Refused
from deploy.supervisor import Child, Stopped, Supervisor, next_pause

Make = Callable[..., Child]
SLEEP = "import time; print('awake', flush=True); time.sleep(600)"


def test_a_killed_child_is_back_under_a_new_pid(supervisor: Supervisor, child: Make, until: Callable[..., None]) -> None:
    told: list[dict[str, int]] = []
    supervisor.changed = lambda: told.append(supervisor.pids)
    supervisor.start(child("web", SLEEP))
    until(lambda: supervisor.pids)
    first = supervisor.pids["web"]

    os.kill(first, signal.SIGKILL)

    until(lambda: supervisor.pids.get("web", first) != first)
    until(lambda: len(told) == 2)
    assert [pids["web"] for pids in told] == [first, supervisor.pids["web"]]


def test_the_pid_is_that_of_the_process_itself(
    supervisor: Supervisor, child: Make, output: io.StringIO, until: Callable[..., None]
) -> None:
    supervisor.start(child("web", "import os, time; print('pid', os.getpid()); time.sleep(600)"))
    until(lambda: "pid " in output.getvalue())
    assert f"pid {supervisor.pids['web']}" in output.getvalue()


def test_a_restart_does_not_wait_for_what_the_dead_child_left_running(
    supervisor: Supervisor, child: Make, output: io.StringIO, until: Callable[..., None], is_gone: Callable[[int], bool]
) -> None:
    supervisor.start(child("tools", "import os, time; os.fork(); print('here', os.getpid(), flush=True); time.sleep(600)"))
    until(lambda: output.getvalue().count("here") == 2)
    here = [int(line.split()[-1]) for line in output.getvalue().splitlines() if "here" in line]
    first = supervisor.pids["tools"]

    os.kill(first, signal.SIGKILL)

    until(lambda: all(is_gone(pid) for pid in here))
    until(lambda: supervisor.pids.get("tools", first) != first)


def test_the_pause_grows_while_a_child_keeps_dying_and_not_after_it_lived() -> None:
    pauses = [0.0]
    for _ in range(10):
        pauses.append(next_pause(pauses[-1], lived=1))
    assert pauses == [0, 0.25, 0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert next_pause(30, lived=31) == 0.25


def test_a_child_that_keeps_dying_at_start_is_one_clear_line(supervisor: Supervisor, child: Make) -> None:
    supervisor.start(child("web", "raise SystemExit(3)"))
    with pytest.raises(Refused, match="web keeps ending"):
        supervisor.wait_for("the API", lambda: False, 20)


def test_a_quiet_child_is_heard_when_it_dies(
    supervisor: Supervisor, child: Make, output: io.StringIO, until: Callable[..., None]
) -> None:
    supervisor.start(child("postgres", "print('the disk is full'); raise SystemExit(1)", quiet=True))
    until(lambda: "postgres ended with 1" in output.getvalue())
    until(lambda: "the disk is full" in output.getvalue())


def test_a_request_to_stop_ends_a_start_that_still_waits(supervisor: Supervisor) -> None:
    supervisor.ending.set()
    with pytest.raises(Stopped):
        supervisor.wait_for("the API", lambda: False, 20)


def test_output_is_prefixed_with_the_name(
    supervisor: Supervisor, child: Make, output: io.StringIO, until: Callable[..., None]
) -> None:
    supervisor.start(child("turns", SLEEP))
    until(lambda: "awake" in output.getvalue())
    assert "turns    | awake" in output.getvalue()
