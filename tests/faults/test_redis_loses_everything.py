"""Redis is emptied, full or read-only. Every run ends, and decisions commit."""

import pytest
from crashes.processes import wait_for
from faults.plant import POST_SECONDS, Crowd, Plant

from models.session.hints import AT_ONCE


def test_flushall_in_the_middle_loses_no_run(plant: Plant, crowd: Crowd) -> None:
    """Redis is emptied again and again, while messages are sent and wait."""
    for _ in range(4):
        crowd.begin(2)
        plant.redis.execute("FLUSHALL")
    crowd.finished(40)


def test_a_backlog_is_worked_off_by_the_claims_alone_once_the_sweep_has_begun(plant: Plant, crowd: Crowd) -> None:
    """All messages are lost. The sweep hints the front, and then no sweep comes any more."""
    turns, beat = plant.process("turns"), plant.process("beat")
    turns.suspend()
    try:
        crowd.begin(3 * AT_ONCE, "say Hello.")
        plant.redis.execute("FLUSHALL")
        wait_for("the sweep hints the front", lambda: plant.redis.execute("LLEN", "turns") == AT_ONCE)
        beat.suspend()
    finally:
        turns.resume()
    crowd.until(lambda seen: seen.session.status == "idle", 30)
    beat.resume()


@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_decisions_commit_while_redis_takes_no_writes(plant: Plant, crowd: Crowd, fault: str) -> None:
    """Each decision and each message gets a 200 in time, and all runs end once Redis is healed."""
    crowd.begin(6, bash="always_ask")
    approvals = crowd.questions()
    if fault == "full":
        plant.redis.execute("CONFIG", "SET", "maxmemory", "1")
    else:
        plant.redis.execute("REPLICAOF", "127.0.0.1", "1")
    for approval in approvals:
        assert crowd.decide(approval, result="allow").status_code == 200
    crowd.begin(2, "say Hello.")
    assert all(approval.status == "allowed" for session in approvals for approval in crowd.stage.approvals(session.session_id))
    assert crowd.slowest < POST_SECONDS
    plant.redis.heal()
    for seen in crowd.until(lambda seen: seen.session.status == "idle", 60):
        assert crowd.effects(seen.session.id) == len(seen.calls)
