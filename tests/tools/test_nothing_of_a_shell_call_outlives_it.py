"""Whatever a command starts is dead when its call is over: by its end, its time limit, a cancel, or the worker's death."""

import contextlib
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from forked import start_worker
from looking import alive, below_keepers, keepers, text, until

from workers.tools.output import OutcomeUnknown

pytestmark = [pytest.mark.crash]


STUBBORN = {
    "background": "sleep {m} & sleep {m}",
    "setsid": "setsid sleep {m} & sleep {m}",
    "nohup": "nohup sleep {m} > /dev/null 2>&1 & disown; sleep {m}",
    "double fork": "(setsid bash -c '(setsid sleep {m} &) ; exit' &) ; sleep {m}",
    "ignores signals": "trap '' TERM INT HUP; bash -c 'trap \"\" TERM; sleep {m}; :' & sleep {m}",
    "stopped": "sleep {m} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; sleep {m}",
    "many": "for i in $(seq 50); do sleep {m} & done; wait",
}
"""Commands that do not end by themselves, and have children that do not want to."""


@pytest.fixture
def stubborn(mark):
    """The commands by name. Each has a mark of its own, which begins with the test's mark."""
    return {name: command.format(m=f"{mark}{number}") for number, (name, command) in enumerate(STUBBORN.items())}


def all_run(mark):
    """True once each of the commands has at least two processes."""
    return all(len(alive(f"{mark}{number}")) >= 2 for number in range(len(STUBBORN)))


def test_all_is_dead_after_the_time_limit(call, each_shell, stubborn, mark):
    with ThreadPoolExecutor(len(stubborn)) as threads:
        calls = {name: threads.submit(call, "bash", seconds=2, command=command) for name, command in stubborn.items()}
        texts = {name: text(running.result()) for name, running in calls.items()}
    assert alive(mark) == []
    assert all("timed out after 2 s; its processes were killed" in shown for shown in texts.values()), texts


def test_all_is_dead_after_a_cancel(call, each_shell, stubborn, mark):
    cancelled = threading.Event()
    with ThreadPoolExecutor(len(stubborn)) as threads:
        calls = {name: threads.submit(call, "bash", cancelled=cancelled, command=command) for name, command in stubborn.items()}
        until(lambda: all_run(mark))
        cancelled.set()
        texts = {name: text(running.result(20)) for name, running in calls.items()}
    assert alive(mark) == []
    assert all("cancelled; its processes were killed" in shown for shown in texts.values()), texts


def test_background_processes_end_with_the_call(call, each_shell, mark):
    result = call("bash", command=f"sleep {mark} & (setsid nohup sleep {mark} &); echo done")
    assert alive(mark) == []
    assert text(result) == "stdout:\ndone\n\nexit code: 0\ndirectory: ."


@pytest.fixture
def worker(stubborn, mark, each_shell):
    """A process of its own in the middle of shell calls."""
    process = start_worker(*(("bash", {"command": command}) for command in stubborn.values()))
    until(lambda: all_run(mark), 40)  # the first one imports for seconds where many tests run at once
    yield process
    process.kill()
    process.join()


def test_all_is_dead_two_seconds_after_the_worker_is_killed(worker, mark):
    worker.kill()
    worker.join()
    until(lambda: not alive(mark), seconds=2)


def test_a_frozen_worker_does_not_stretch_the_time_limit(files, mark):
    # Within the three seconds the test must see the command.
    process = start_worker(("bash", {"command": f"setsid sleep {mark} & sleep {mark}"}), seconds=3)
    until(lambda: len(alive(mark)) >= 2, 40)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: not alive(mark), seconds=10)
    os.kill(process.pid, signal.SIGCONT)
    process.join(10)
    assert process.exitcode == 0


def test_the_shell_outlives_signals_that_end_workers_gracefully(call, mark):
    signalled = []

    def terminate():
        until(lambda: alive(mark))
        signalled.extend(keepers())
        for pid in signalled:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                os.kill(pid, number)

    threading.Thread(target=terminate).start()
    result = call("bash", seconds=1, command=f"sleep {mark}")
    assert "timed out" in text(result)
    assert signalled


@pytest.mark.parametrize("number", ["KILL", "STOP"])
def test_without_the_keepers_report_the_outcome_is_unknown(call, mark, number, monkeypatch):
    monkeypatch.setattr("workers.leash.running.SLACK_SECONDS", -4.0)
    with pytest.raises(OutcomeUnknown):
        call("bash", seconds=1, command=f"kill -{number} $PPID; sleep {mark}")
    until(lambda: not alive(mark))
    assert below_keepers() == []


def test_a_command_cannot_forge_the_keepers_report(call, files):
    if os.getuid() == 0:
        pytest.skip("NOT TESTED: root may read any process")
    output = text(call("bash", command="for fd in /proc/$PPID/fd/*; do echo forged > $fd; done; ls /proc/$PPID/fd"))
    assert "ermission denied" in output


def test_a_shell_that_cannot_start_is_an_error_not_an_unknown(call, monkeypatch):
    kill_keepers()
    monkeypatch.setattr("workers.leash.keepers.program", lambda *_words: [sys.executable, "/nonexistent.py"])
    assert text(call("bash", command="true")) == "bash: could not be started: its keeper failed"


def test_a_killed_keeper_is_replaced(call):
    call("bash", command="true")
    kill_keepers()
    assert "exit code: 0" in text(call("bash", command="true"))


def kill_keepers():
    """Kill this process's keepers, which wait for commands."""
    for pid in keepers():
        os.kill(pid, signal.SIGKILL)
    until(lambda: not keepers())


def test_a_keeper_keeps_one_command_after_the_other(call):
    kill_keepers()
    call("bash", command="true")
    first = keepers()
    assert "exit code: 3" in text(call("bash", command="exit 3"))
    assert keepers() == first


@pytest.mark.parametrize("command", ["kill -KILL $PPID", "sleep 60"])
def test_a_keeper_whose_command_did_not_exit_by_itself_keeps_no_other(call, command):
    kill_keepers()
    with contextlib.suppress(OutcomeUnknown):
        call("bash", seconds=0.2, command=command)
    assert keepers() == []


def test_a_command_whose_keeper_came_too_late_never_starts(call, files, monkeypatch):
    """The worker says that nothing happened, so nothing may happen when the keeper goes on."""
    call("bash", command="true")
    monkeypatch.setattr("workers.leash.running.SLACK_SECONDS", -4.0)
    monkeypatch.setattr("workers.leash.running.END_SECONDS", 4.0)
    stopped = keepers()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert "could not be started" in text(call("bash", seconds=0.5, command="touch effect"))
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    until(lambda: not set(stopped) & set(keepers()))
    assert not (files / "effect").exists()


def test_no_process_and_no_descriptor_is_left_behind(call):
    call("bash", command="true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        call("bash", command="sleep 60 & true")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert below_keepers() == []


def test_a_command_that_makes_hundreds_of_orphans_leaves_no_zombies(call):
    output = text(call("bash", command="for i in $(seq 300); do (true &); done; ps -e -o stat= | grep -c ^Z"))
    assert int(output.split("\n")[1]) < 225
