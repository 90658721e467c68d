"""A deploy, or five in the slow run: SIGTERM ends workers beside others, and work goes on."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from crashes.effects import SERVERS, Ledger, call
from crashes.journey import Journey, bash, spell, sweep_here
from crashes.processes import PACE, wait_for
from faults.shifts import Worker, pid_of

from models.database.transactions import transaction
from workers.celery import app

SCRIPT = (
    "say 40 tokens at 40/s",
    bash("echo effect >> effects; sleep 1; echo whole >> effects"),
    "then",
    call("charge"),
    bash("echo effect >> effects; sleep 0.5; echo whole >> effects"),
    "then",
    "say 40 tokens at 40/s",
)
LONGEST_SECONDS = app.conf.worker_soft_shutdown_timeout + 5
"""Seconds after which a deploy kills a worker."""


@pytest.fixture
def deploy(shift_env: dict[str, str], fault_folder: Path) -> Iterator[Callable[[int], tuple[Worker, Worker]]]:
    """Starts the workers of a release, which end with the test."""
    with ExitStack() as stack:

        def start(release: int) -> tuple[Worker, Worker]:
            turns, tools = (Worker.start(f"{kind}-{release}", shift_env, fault_folder) for kind in ("turns", "tools"))
            stack.callback(turns.process.stop)
            stack.callback(tools.process.stop)
            return turns, tools

        yield start


@pytest.mark.timeout(240)
@pytest.mark.parametrize("deploys", [1, pytest.param(5, marks=[pytest.mark.slow])])
def test_a_deploy_loses_and_doubles_nothing_and_leaves_no_outcome_unknown(
    journeys: Callable[[], Journey],
    ledger: Ledger,
    workers: dict[str, Worker],
    deploy: Callable[[int], tuple[Worker, Worker]],
    deploys: int,
) -> None:
    """Each worker finishes its work and ends within its soft shutdown, and every message is answered.

    The shift is the release that stays.
    """
    crowd = Crowd(journeys)
    for release in range(1, deploys + 1):
        old = deploy(release)
        for worker in old:
            worker.ready()
        times = {worker.name: end_at_work(worker, crowd) for worker in old}
        for worker in old:
            wait_for(f"{worker.name} ends", lambda w=worker: w.process.running.poll() is not None, LONGEST_SECONDS)
            assert time.monotonic() - times[worker.name] < LONGEST_SECONDS
            assert worker.process.running.returncode == 0, worker.log[-2000:]
            assert not re.search(r"exited with|Traceback", worker.log), worker.log[-3000:]
    for journey in crowd.all:
        seen = journey.until(lambda seen: seen.session.status == "idle", 30)
        assert seen.session.stop_reason == {"type": "end_turn"}, spell(seen)
        assert not seen.approvals, "nothing is unknown"
        assert [(t.status, t.losses) for t in seen.turns] == [("done", 0)] * 3
        assert [(c.status, c.is_error) for c in seen.calls] == [("done", False)] * 3, spell(seen)
        assert [a.outcome for a in seen.attempts] == ["done"] * 3
        assert (journey.effects(), journey.effects("whole"), ledger.effects(journey.session_id)) == (2, 2, 1)


class Crowd:
    """A growing number of sessions."""

    def __init__(self, journeys: Callable[[], Journey]) -> None:
        self.all: list[Journey] = []
        self._new_journey = journeys

    def grow(self) -> None:
        """Begin another session."""
        self.all.append(self._new_journey().begin(servers=SERVERS, till="always_allow", bash="always_allow"))
        self.all[-1].say(f"Session {self.all[-1].session_id}", *SCRIPT)

    def keeps(self, pids: set[int]) -> bool:
        """True if one of these processes runs a turn or a call of a session."""
        running = "SELECT worker FROM turn WHERE status = 'running' UNION ALL SELECT worker FROM tool_call WHERE status = 'running'"
        with transaction(self.all[0].stage.workspace_id) as db:
            return any(pid_of(worker) in pids for (worker,) in db.rows(running))


def end_at_work(worker: Worker, crowd: Crowd) -> float:
    """Send SIGTERM in the middle of some work. Returns the time."""
    deadline, grow, pids = time.monotonic() + 30, 0.0, worker.pids
    while not crowd.all or not crowd.keeps(pids):
        assert time.monotonic() < deadline, f"{worker.name} has nothing to do"
        if time.monotonic() >= grow:
            crowd.grow()
            sweep_here()
            grow = time.monotonic() + 0.5
        time.sleep(PACE)
    worker.ask_to_end()
    return time.monotonic()
