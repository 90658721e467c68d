"""The workers' link to Postgres goes silent. They notice in about ten seconds; a stale fence writes nothing."""

import time

import pytest
from crashes.journey import LEASE, bash, spell, sweep_here
from crashes.processes import wait_for
from faults.plant import Crowd, Plant
from own_database import Clock

SILENCE_SECONDS = 30
NOTICED_SECONDS = 20
"""8 s of tcp_user_timeout, 3 s for a second try on a new connection, and the rest for a busy machine."""
WAITS = "\n".join((bash("echo effect >> effects; until [ -e go ]; do sleep 0.05; done"), "then", "say Done."))


@pytest.fixture
def cut_off(plant: Plant, crowd: Crowd) -> list[str]:
    """Sessions whose calls run on workers that have noticed the cut."""
    sessions = crowd.begin(2, WAITS, bash="always_allow")
    wait_for("both run", lambda: all(crowd.effects(session_id) for session_id in sessions))
    mark = plant.mark
    plant.to_postgres.cut()
    wait_for("the cut is noticed", lambda: plant.output_since(mark, r"tools.*leases: not renewed"), NOTICED_SECONDS)
    for session_id in sessions:
        (plant.workdirs / session_id / "files" / "go").touch()
    return sessions


def test_a_result_is_stored_once_the_cut_is_over(plant: Plant, crowd: Crowd, cut_off: list[str]) -> None:
    """The calls end during the cut. Their results are stored under their unexpired leases."""
    plant.to_postgres.heal()
    for seen in crowd.finished(30):
        assert [call.attempt for call in seen.calls] == [1]
        assert [call.fence for call in seen.calls] == [1], spell(seen)


@pytest.mark.slow
def test_a_call_that_was_settled_during_the_cut_stays_settled(plant: Plant, crowd: Crowd, cut_off: list[str], clock: Clock) -> None:
    """The leases run out and a person settles the calls. The workers' reports after 30 s change nothing."""
    cut = time.monotonic()
    clock.advance(LEASE)
    sweep_here()
    for session_id in cut_off:
        (approval,) = crowd.stage.approvals(session_id)
        assert approval.kind == "unknown_outcome"
        crowd.stage.decide(approval, outcome="happened", content=({"type": "text", "text": "I looked."},))
    wait_for("the cut lasts", lambda: time.monotonic() - cut > SILENCE_SECONDS, SILENCE_SECONDS + 1)
    plant.to_postgres.heal()
    for seen in crowd.finished(40):
        assert list(seen.results.values()) == [[{"type": "text", "text": "I looked."}]]
