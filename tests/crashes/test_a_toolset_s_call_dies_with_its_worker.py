"""Kill -9 of a worker's process while a toolset's function runs in its runner, before and after its effect."""

import os
import signal

import pytest
from crashes.effects import SERVERS, Ledger, Noted, call
from crashes.journey import Journey, pid_of
from crashes.processes import wait_for

from models.pure.times import rfc3339

MOMENTS = {"wait before": 0, "wait after": 1}
"""Where the function waits to be killed, and the number of its effects by then."""


def kill_worker(journey: Journey, ledger: Ledger, effects: int) -> Noted:
    """Kill the worker's process where the function waits. Its runner dies with it. Returns the run."""
    (run,) = wait_for("the function runs", lambda: ledger.runs(journey.session_id))
    wait_for("the function takes effect", lambda: ledger.effects(journey.session_id) == effects)
    call_id = journey.look().calls[0].id
    journey.until(lambda seen: "began" in (seen.attempts[0].output or ""))
    assert run.key == call_id
    worker = journey.look().calls[0].worker
    assert worker
    os.kill(pid_of(worker), signal.SIGKILL)
    wait_for("its runner dies", lambda: not run.lives, seconds=5)
    ledger.open_gate(journey.session_id)
    journey.later()
    return run


@pytest.mark.parametrize("how", MOMENTS)
def test_a_person_sees_the_lost_attempt_and_settles_its_outcome(journey: Journey, ledger: Ledger, how: str) -> None:
    """The person sees the worker, the start and the output. Nothing runs on or again without a decision."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", how), "then", "say Done.")
    kill_worker(journey, ledger, MOMENTS[how])
    unknown = journey.until_asked("unknown_outcome")
    (attempt,) = journey.look().attempts
    assert unknown.attempt_told == {
        "number": 1,
        "worker": attempt.worker,
        "started_at": rfc3339(attempt.started_at),
        "output": "attempt 1 of charge began\n",
    }
    assert ledger.effects(journey.session_id) == MOMENTS[how]
    journey.settle_unknown(happened=bool(MOMENTS[how]))
    seen = journey.until_idle()
    assert ledger.effects(journey.session_id) == 1
    assert [a.outcome for a in seen.attempts] == (["unknown"] if MOMENTS[how] else ["unknown", "done"])


@pytest.mark.parametrize("how", MOMENTS)
def test_an_idempotent_call_runs_again_under_its_key(journey: Journey, ledger: Ledger, how: str) -> None:
    """One key and one input, nobody is asked, and the function that honours its key takes effect once."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("put", how), "then", "say Done.")
    first = kill_worker(journey, ledger, MOMENTS[how])
    seen = journey.until_idle()
    _, second = ledger.runs(journey.session_id)
    assert (second.key, second.how, second.attempt) == (first.key, first.how, 2)
    assert second.pid != first.pid
    assert not seen.approvals
    assert [a.outcome for a in seen.attempts] == ["lost", "done"]
    assert ledger.effects(journey.session_id) == 1
    assert seen.result() == [{"type": "text", "text": "done at attempt 2"}]
