"""The link to Redis goes silent without being closed, again and again. Then all runs end within 40 s."""

import time

import pytest
from crashes.processes import wait_for
from faults.plant import POST_SECONDS, Crowd, Plant

FLAPS = 10


def test_a_post_is_answered_in_time_while_redis_is_silent(plant: Plant, crowd: Crowd) -> None:
    """The API's connection to Redis is dead without being closed. No POST waits for Redis."""
    crowd.begin(2)
    plant.to_redis.cut()
    crowd.begin(4)
    assert plant.to_redis.silent
    assert crowd.slowest < POST_SECONDS
    crowd.until(lambda seen: seen.turns, 1)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_all_runs_finish_within_40_seconds_of_ten_flaps(plant: Plant, crowd: Crowd) -> None:
    """Each flap silences the present connections for good. The last one also prevents new connections for a while."""
    for _ in range(FLAPS):
        crowd.begin(2)
        plant.to_redis.forget()
    plant.to_redis.cut()
    cut = time.monotonic()
    crowd.begin(2)
    wait_for("the cut lasts", lambda: time.monotonic() - cut > 10, 11)
    plant.to_redis.heal()
    crowd.finished(40)
    assert crowd.slowest < POST_SECONDS
