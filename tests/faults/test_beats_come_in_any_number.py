"""Three beats at once, and one frozen for ten minutes: deadlines apply late, never twice."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from crashes.processes import Process, running, wait_for
from doors.served import message
from faults.plant import EFFECT, Crowd, Plant
from own_database import Clock

BEAT = [sys.executable, "-m", "celery", "--quiet", "-A", "workers", "beat", "--scheduler", "celery.beat:Scheduler", "-l", "info"]
SCRIPT = f"{EFFECT}\nthen\nsay Done."
TEN_MINUTES = 600


@pytest.fixture
def two_more_beats(plant: Plant, fault_folder: Path) -> Iterator[list[Process]]:
    """Beside the plant's own."""
    with ExitStack() as stack:
        yield [stack.enter_context(running(BEAT, plant.env, fault_folder / f"beat-{n}.log")) for n in range(2)]


@pytest.fixture
def frozen(plant: Plant) -> Iterator[None]:
    """The plant's only beat does not beat: SIGSTOP, until the test thaws it or ends."""
    beat = plant.process("beat")
    beat.suspend()
    yield
    beat.resume()


def test_three_beats_expire_and_send_each_thing_once(
    plant: Plant, crowd: Crowd, clock: Clock, two_more_beats: list[Process]
) -> None:
    """An approval that people and three beats settle at once has one decision. A call that was sent three times runs once."""
    crowd.begin(6, SCRIPT, bash="always_ask", approval={"timeout_seconds": TEN_MINUTES})
    asked = crowd.asked()
    for beat in two_more_beats:
        beat.said(r"sweep\.expire_approvals(.|\n)*sweep\.expire_approvals")
    for approval in asked[:3]:
        assert crowd.decide(approval, result="allow").status_code == 200
    crowd.until(lambda seen: seen.session.status == "idle", 20, [a.session_id for a in asked[:3]])
    clock.advance(TEN_MINUTES + 1)
    for seen in crowd.until(lambda seen: seen.session.status == "idle", 20):
        allowed = seen.session.id in {a.session_id for a in asked[:3]}
        assert [a.status for a in seen.approvals] == ["allowed" if allowed else "expired"]
        assert crowd.effects(seen.session.id) == allowed


def test_a_frozen_beat_is_late_and_loses_nothing(plant: Plant, crowd: Crowd, clock: Clock, frozen: None) -> None:
    """Hints work without it; a late allow is refused by the clock alone; what expired is settled once it beats again."""
    late, forgotten = crowd.begin(2, SCRIPT, bash="always_ask", approval={"timeout_seconds": TEN_MINUTES})
    asked = {approval.session_id: approval for approval in crowd.asked()}
    clock.advance(TEN_MINUTES + 1)
    hinted = crowd.begin(1, SCRIPT, bash="always_allow")
    crowd.until(lambda seen: seen.session.status == "idle", 20, hinted)
    assert [a.status for a in crowd.stage.approvals(forgotten)] == ["pending"], "late"
    assert crowd.decide(asked[late], result="allow").status_code == 409
    plant.redis.say("FLUSHALL")
    lost = crowd.begin(1, SCRIPT, bash="always_allow")
    plant.process("beat").resume()
    crowd.until(lambda seen: seen.session.status == "idle", 20)
    assert [crowd.effects(session_id) for session_id in (late, forgotten, *lost)] == [0, 0, 1]
    crowd.post(forgotten, message("say Later."))
    wait_for("it goes on", lambda: crowd.stage.read(forgotten).status == "idle")
