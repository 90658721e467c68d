"""Redis is dead under load for 6 s, or for 60 s in the slow run. No accepted message is lost."""

import time

import pytest
from crashes.processes import wait_for
from faults.plant import POST_SECONDS, RUNS, Crowd, Plant

PER_SECOND = 3


@pytest.mark.parametrize("seconds", [6, pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(400)])])
def test_everything_accepted_while_redis_is_dead_is_finished(plant: Plant, crowd: Crowd, seconds: int) -> None:
    """The API answers each POST within a second, the workers live on or start again, and all runs end."""
    crowd.begin(8)
    plant.redis.kill()
    killed, crowd.slowest = time.monotonic(), 0.0  # the first POSTs met a cold process
    for number in range(seconds * PER_SECOND):
        due = killed + number / PER_SECOND
        wait_for("the time of the next session", lambda due=due: time.monotonic() >= due)
        crowd.begin(1)
    plant.redis.start()
    assert crowd.slowest < POST_SECONDS
    wait_for("all processes are up", lambda: set(plant.supervisor.pids) == set(RUNS))
    crowd.finished(40 + len(crowd.sessions))


def test_a_turns_worker_goes_on_while_redis_is_dead(plant: Plant, crowd: Crowd) -> None:
    """Replies in flight are finished: a wait for Redis blocks no other greenlet of the process."""
    crowd.begin(3, "say 200 tokens at 50/s", bash="always_allow")
    crowd.until(lambda seen: seen.turns[0].status == "running", 40)  # a worker may still be coming back from another test
    plant.redis.kill()
    began = time.monotonic()
    crowd.until(lambda seen: seen.session.status == "idle", 10)
    assert time.monotonic() - began < 6
    plant.redis.start()
