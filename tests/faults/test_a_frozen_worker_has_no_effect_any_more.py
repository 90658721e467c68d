"""I2: a worker that is frozen past its lease has no effect any more, whatever a person decided meanwhile, and when it wakes."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest
from crashes.hints import use_redis
from crashes.journey import Journey, bash
from faults.shifts import Worker

LEASE_SECONDS = 4
WAITS = "until [ -e go ]; do sleep 0.02; done; echo effect >> effects"
SCRIPT = bash(f"echo begun; (setsid bash -c '{WAITS.replace('effect', 'other')}' &) ; {WAITS}")


@pytest.fixture(scope="module")
def shift(shift_env: dict[str, str], fault_folder: Path) -> Iterator[dict[str, Worker]]:
    """A turns worker, a tools worker, and one that takes over from both, under leases that end soon."""
    env = shift_env | {"ASSENT_LEASE_SECONDS": str(LEASE_SECONDS), "REDIS_URL": f"{shift_env['REDIS_URL'][:-1]}3"}
    with ExitStack() as stack:
        workers = {name: Worker.start(f"{name}-short", env, fault_folder) for name in ("turns", "tools", "all")}
        for worker in workers.values():
            stack.callback(worker.process.stop)
        for worker in workers.values():
            worker.ready()
        yield workers


def stop(worker: Worker, tree: list[psutil.Process]) -> None:
    os.killpg(worker.process.running.pid, signal.SIGSTOP)
    for process in tree:
        with suppress(psutil.NoSuchProcess):  # a `sleep` that is over
            process.suspend()


def wake(worker: Worker, tree: list[psutil.Process]) -> None:
    """The deepest first: a command gets a head start on its keeper."""
    for process in reversed(tree):
        with suppress(psutil.NoSuchProcess):
            process.resume()
    os.killpg(worker.process.running.pid, signal.SIGCONT)


@pytest.mark.parametrize(("stopped", "outcome", "effects"), [("group", "rerun", 1), ("tree", "give_up", 0)])
def test_what_it_was_doing_never_takes_effect(
    journeys: Callable[[], Journey],
    shift: dict[str, Worker],
    monkeypatch: pytest.MonkeyPatch,
    shift_env: dict[str, str],
    stopped: str,
    outcome: str,
    effects: int,
) -> None:
    """The worker is stopped with its process group, and its command would go on; or with its whole tree, keeper and command too."""
    use_redis(monkeypatch, f"{shift_env['REDIS_URL'][:-1]}3")
    zombie, other = shift["tools"], shift["all"]
    other.sleep()
    journey = journeys().begin(bash="always_allow")
    journey.say(SCRIPT, "then", "say Done.")
    found = journey.until(lambda seen: [a for a in seen.attempts if "begun" in (a.output or "")])
    assert zombie.has(found.calls[0].worker)
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
        other.wake()
    journey.until(lambda seen: seen.attempts[0].late_result)
    assert journey.effects() == effects
    assert journey.effects("other") <= effects, "what it left in the background may end before it comes to its effect"
