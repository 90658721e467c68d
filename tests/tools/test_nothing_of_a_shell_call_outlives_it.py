"""Whatever a command starts is dead when its call is over: by its end, its time limit, a cancel, or the worker's death."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from looking import alive, keepers, text, until

from workers.tools.errors import OutcomeUnknown

pytestmark = [pytest.mark.crash]


@pytest.fixture
def mark():
    """Seconds of sleep that nobody else sleeps: marks processes of a test."""
    return f"98{time.time_ns() % 10**9}"


@pytest.fixture(
    params=[
        "sleep {m} & sleep {m}",
        "setsid sleep {m} & sleep {m}",
        "nohup sleep {m} > /dev/null 2>&1 & disown; sleep {m}",
        "(setsid bash -c '(setsid sleep {m} &) ; exit' &) ; sleep {m}",
        "trap '' TERM INT HUP; bash -c 'trap \"\" TERM; sleep {m}; :' & sleep {m}",
        "sleep {m} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; sleep {m}",
        "for i in $(seq 200); do sleep {m} & done; wait",
    ],
    ids=["background", "setsid", "nohup", "double-fork", "ignores-signals", "stopped", "many"],
)
def stubborn(request, mark):
    """A command that does not end by itself, and has children that do not want to."""
    return request.param.format(m=mark)


def test_all_is_dead_after_the_time_limit(call, each_shell, stubborn, mark):
    result = call("bash", seconds=1, command=stubborn)
    assert alive(mark) == []
    assert result.is_error
    assert "timed out after 1 s; its processes were killed" in text(result)


def test_all_is_dead_after_a_cancel(call, each_shell, stubborn, mark):
    cancelled = threading.Event()
    result = []
    running = threading.Thread(target=lambda: result.append(call("bash", cancelled=cancelled, command=stubborn)))
    running.start()
    until(lambda: len(alive(mark)) >= 2)
    cancelled.set()
    running.join(10)
    assert alive(mark) == []
    assert "cancelled; its processes were killed" in text(result[0])


def test_what_is_left_in_the_background_ends_with_the_call(call, each_shell, mark):
    begun = time.monotonic()
    result = call("bash", command=f"sleep {mark} & (setsid nohup sleep {mark} &); echo done")
    assert alive(mark) == []
    assert time.monotonic() - begun < 5
    assert text(result) == "stdout:\ndone\n\nexit code: 0"


WORKER = """
import os, sys
from workers.tools import registry, workdir
root = workdir.session_root("sesn_1")
tool = registry.look_up("bash")
registry.execute(tool, registry.ToolContext("sevt_call", "sesn_1", root, 60), {"command": sys.stdin.read()})
"""


def start_worker(code, command):
    """The command goes by standard input, so that only what it starts has the mark in its command line."""
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdin=subprocess.PIPE)
    process.stdin.write(command.encode())
    process.stdin.close()
    return process


@pytest.fixture
def worker(stubborn, mark, each_shell):
    """A process of its own in the middle of a shell call."""
    process = start_worker(WORKER, stubborn)
    until(lambda: len(alive(mark)) >= 2, 40)  # the worker imports for seconds where many tests run at once
    yield process
    process.kill()
    process.wait()


def test_all_is_dead_two_seconds_after_the_worker_is_killed(worker, mark):
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    until(lambda: not alive(mark), seconds=2)


def test_a_frozen_worker_does_not_stretch_the_time_limit(files, mark):
    code = WORKER.replace("root, 60", "root, 3")  # within that time the test must see the command
    process = start_worker(code, f"setsid sleep {mark} & sleep {mark}")
    until(lambda: len(alive(mark)) >= 2)
    process.send_signal(signal.SIGSTOP)
    until(lambda: not alive(mark), seconds=10)
    process.send_signal(signal.SIGCONT)
    assert process.wait(10) == 0


def test_the_shell_outlives_signals_that_end_workers_gracefully(call, mark):
    told = []

    def terminate():
        until(lambda: alive(mark))
        told.extend(keepers())
        for pid in told:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                os.kill(pid, number)

    threading.Thread(target=terminate).start()
    result = call("bash", seconds=1, command=f"sleep {mark}")
    assert "timed out" in text(result)
    assert told


@pytest.mark.parametrize("number", ["KILL", "STOP"])
def test_without_the_keepers_word_the_outcome_is_unknown(call, mark, number, monkeypatch):
    monkeypatch.setattr("workers.tools.sandbox.leash.SLACK_SECONDS", -4.0)
    with pytest.raises(OutcomeUnknown):
        call("bash", seconds=1, command=f"kill -{number} $PPID; sleep {mark}")
    until(lambda: not alive(mark))
    assert keepers() == []


def test_the_command_cannot_speak_for_the_keeper(call, files):
    if os.getuid() == 0:
        pytest.skip("root may read any process")
    said = text(call("bash", command="for fd in /proc/$PPID/fd/*; do echo forged > $fd; done; ls /proc/$PPID/fd"))
    assert "ermission denied" in said


def test_a_shell_that_cannot_start_is_an_error_not_an_unknown(call, monkeypatch):
    monkeypatch.setattr("workers.tools.sandbox.leash._KEEPER", "/nonexistent.py")
    assert text(call("bash", command="true")) == "bash: could not be started: its keeper failed"


def test_no_process_and_no_descriptor_is_left_behind(call):
    call("bash", command="true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        call("bash", command="sleep 60 & true")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert keepers() == []


def test_a_command_that_makes_thousands_of_orphans_leaves_no_zombies(call):
    said = text(call("bash", command="for i in $(seq 2000); do (true &); done; ps -e -o stat= | grep -c ^Z"))
    assert int(said.split("\n")[1]) < 1500
