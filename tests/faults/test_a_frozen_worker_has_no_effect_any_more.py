"""A worker that is frozen past its lease has no effect any more, whatever a person decides before it wakes."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from crashes.journey import Journey, bash
from faults.shifts import Worker

LEASE_SECONDS = 4
WAITS = "until [ -e go ]; do sleep 0.02; done; echo effect >> effects"
SCRIPT = bash(f"echo begun; (setsid bash -c '{WAITS.replace('effect', 'other')}' &) ; {WAITS}")


@pytest.fixture(scope="module")
def zombie(shift_env: dict[str, str], fault_folder: Path) -> Iterator[Worker]:
    """A tools worker whose leases end soon."""
    worker = Worker.start("tools-short", shift_env | {"ASSENT_LEASE_SECONDS": str(LEASE_SECONDS)}, fault_folder)
    yield worker.ready()
    worker.process.stop()


def stop(worker: Worker, tree: list[psutil.Process]) -> None:
    os.killpg(worker.process.running.pid, signal.SIGSTOP)
    for process in tree:
        with suppress(psutil.NoSuchProcess):  # a `sleep` that has ended
            process.suspend()


def wake(worker: Worker, tree: list[psutil.Process]) -> None:
    """Wake the deepest process first, which gives a command a head start on its keeper."""
    for process in reversed(tree):
        with suppress(psutil.NoSuchProcess):
            process.resume()
    os.killpg(worker.process.running.pid, signal.SIGCONT)


@pytest.mark.parametrize(("stopped", "outcome", "effects"), [("group", "rerun", 1), ("tree", "give_up", 0)])
def test_a_frozen_worker_s_call_never_takes_effect(
    journeys: Callable[[], Journey],
    workers: dict[str, Worker],
    zombie: Worker,
    stopped: str,
    outcome: str,
    effects: int,
) -> None:
    """SIGSTOP reaches the worker's process group, so that the command runs on, or its whole tree with keeper and command."""
    other = workers["all"]
    workers["tools"].sleep()
    journey = journeys().begin(bash="always_allow")
    journey.say(SCRIPT, "then", "say Done.")
    seen = journey.until(lambda seen: [a for a in seen.attempts if "begun" in (a.output or "")])
    assert zombie.has(seen.calls[0].worker)
    tree = zombie.process.family if stopped == "tree" else []
    stop(zombie, tree)
    try:
        other.wake()
        unknown = journey.until_asked("unknown_outcome")
        journey.stage.decide(unknown, outcome=outcome)
        (journey.workdirs / journey.session_id / "files" / "go").touch()
        journey.until_idle()
    finally:
        wake(zombie, tree)
    journey.until(lambda seen: seen.attempts[0].late_result)
    assert journey.effects() == effects
    assert journey.effects("other") <= effects, "the process in the background may be ended before its effect"
