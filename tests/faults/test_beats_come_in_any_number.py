"""Three beats and two of every worker at once, or one beat that is frozen for ten minutes: deadlines apply late, never twice."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from crashes.processes import READY, TOOLS, WORKER, Process, patched_early, running, wait_for
from doors.served import message
from faults.plant import SCRIPT, Crowd, Plant
from own_database import Clock

BEAT = [
    sys.executable,
    "-m",
    "celery",
    "--quiet",
    "-A",
    "workers",
    "beat",
    "--scheduler",
    "workers.sweeps.scheduler:Scheduler",
    "-l",
    "debug",
]
SECOND = {
    name: [*patched_early(WORKER), "-P", "gevent", "-c", "10", "-Q", name, "-n", f"second-{name}@%h"]
    for name in ("turns", "sweeps")
} | {"tools": [*TOOLS, "-n", "second-tools@%h"]}
"""Commands of a second process of each queue that the plant's processes work off."""
TEN_MINUTES = 600


@pytest.fixture
def two_more_beats(plant: Plant, fault_folder: Path) -> Iterator[list[Process]]:
    """Two beats beside the plant's own."""
    with ExitStack() as stack:
        yield [stack.enter_context(running(BEAT, plant.env, fault_folder / f"beat-{n}.log")) for n in range(2)]


@pytest.fixture
def second_workers(plant: Plant, fault_folder: Path) -> Iterator[None]:
    """A second process of each queue, which consumes."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(running(words, plant.env, fault_folder / f"second-{name}.log")) for name, words in SECOND.items()
        ]
        for process in processes:
            process.wait_for_output(READY)
        yield


@pytest.fixture
def frozen(plant: Plant) -> Iterator[None]:
    """The plant's only beat is stopped until the test resumes it or ends."""
    beat = plant.process("beat")
    beat.suspend()
    yield
    beat.resume()


def test_two_of_every_worker_and_three_beats_expire_and_run_each_call_once(
    plant: Plant, crowd: Crowd, clock: Clock, two_more_beats: list[Process], second_workers: None
) -> None:
    """An approval gets one decision from people and three beats. A call that is hinted at three times runs once."""
    crowd.begin(6, SCRIPT, bash="always_ask", approval={"timeout_seconds": TEN_MINUTES})
    approvals = crowd.questions()
    for beat in two_more_beats:
        beat.wait_for_output(r"sweep\.expire_approvals(.|\n)*sweep\.expire_approvals")
    for approval in approvals[:3]:
        assert crowd.decide(approval, result="allow").status_code == 200
    crowd.until(lambda seen: seen.session.status == "idle", 20, [a.session_id for a in approvals[:3]])
    clock.advance(TEN_MINUTES + 1)
    for seen in crowd.until(lambda seen: seen.session.status == "idle", 20):
        allowed = seen.session.id in {a.session_id for a in approvals[:3]}
        assert [a.status for a in seen.approvals] == ["allowed" if allowed else "expired"]
        assert crowd.effects(seen.session.id) == allowed


def test_a_frozen_beat_is_late_and_loses_nothing(plant: Plant, crowd: Crowd, clock: Clock, frozen: None) -> None:
    """Hints work without a beat. The clock alone refuses a late allow. The expired approvals are settled by the next beat."""
    late, undecided = crowd.begin(2, SCRIPT, bash="always_ask", approval={"timeout_seconds": TEN_MINUTES})
    approvals = {approval.session_id: approval for approval in crowd.questions()}
    clock.advance(TEN_MINUTES + 1)
    hinted = crowd.begin(1, SCRIPT, bash="always_allow")
    crowd.until(lambda seen: seen.session.status == "idle", 20, hinted)
    assert [a.status for a in crowd.stage.approvals(undecided)] == ["pending"], "no beat has settled it"
    assert crowd.decide(approvals[late], result="allow").status_code == 409
    plant.redis.execute("FLUSHALL")
    lost = crowd.begin(1, SCRIPT, bash="always_allow")
    plant.process("beat").resume()
    crowd.until(lambda seen: seen.session.status == "idle", 20)
    assert [crowd.effects(session_id) for session_id in (late, undecided, *lost)] == [0, 0, 1]
    crowd.post(undecided, message("say Later."))
    wait_for("the session goes on", lambda: crowd.stage.read(undecided).status == "idle")
