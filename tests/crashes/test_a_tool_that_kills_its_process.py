"""A tool kills its process at every attempt. After three attempts at most the model or a person is told."""

import psutil
import pytest
from crashes.boundaries import OUTSIDE
from crashes.effects import SERVERS, Ledger, call
from crashes.invariants import Seen
from crashes.journey import Journey, bash, pid_of

LOST = "This tool call failed: its worker was lost 3 times while running it. Do not repeat it."
DEATHS = ["segfault", "killed"]


def workers_live(seen: Seen) -> bool:
    """True if every process of the pool that ran one of these calls is still there."""
    return all(psutil.pid_exists(pid_of(attempt.worker)) for attempt in seen.attempts)


@pytest.mark.parametrize("how", DEATHS)
def test_a_call_that_is_not_idempotent_is_put_to_a_person_at_once(journey: Journey, ledger: Ledger, how: str) -> None:
    """No lease has to run out, because the worker sees the death. The worker then takes the next call."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", how), "then", call("charge"), "then", "say Done.")
    unknown = journey.until_asked("unknown_outcome")
    assert unknown.attempt_told
    assert unknown.attempt_told["number"] == 1
    assert ledger.effects(journey.session_id) == 1
    journey.settle_unknown(happened=True)
    seen = journey.until_idle()
    assert [c.status for c in seen.calls] == ["done", "done"]
    assert [a.outcome for a in seen.attempts] == ["unknown", "done"]
    assert [run.how for run in ledger.runs(journey.session_id)] == [how, "well"]
    assert workers_live(seen)


@pytest.mark.parametrize("how", DEATHS)
def test_an_idempotent_call_is_tried_three_times(journey: Journey, ledger: Ledger, how: str) -> None:
    """After that the model is told, nobody is asked, and the next call runs."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("put", how), "then", call("put"), "then", "say Done.")
    seen = journey.until_idle()
    assert not seen.approvals
    assert [(c.status, c.is_error, c.attempt) for c in seen.calls] == [("done", True, 3), ("done", False, 1)]
    assert seen.result() == [{"type": "text", "text": LOST}]
    assert [a.outcome for a in seen.attempts] == ["lost", "lost", "done", "done"]
    assert [run.attempt for run in ledger.runs(journey.session_id)] == [1, 2, 3, 1]
    assert ledger.effects(journey.session_id) == 2, "one for each key"
    assert workers_live(seen)


def test_a_call_that_kills_its_worker_is_tried_three_times(journey: Journey, ledger: Ledger) -> None:
    """Kill -9 of the pool's own process at each attempt. Then the model is told, and the run goes on."""
    journey.armed.at("effect.before")
    journey.begin(servers=SERVERS, till="always_allow").say(call("put"), "then", "say Done.")
    journey.until_crashed()
    for _ in range(2):
        journey.armed.at("effect.before")
        journey.until_crashed()
    seen = journey.until_idle()
    assert seen.session.stop_reason == {"type": "end_turn"}
    assert seen.result() == [{"type": "text", "text": LOST}]
    assert len(seen.attempts) == 3
    assert ledger.runs(journey.session_id) == []


@pytest.mark.parametrize("boundary", [name for name in OUTSIDE if name.startswith("model.")])
def test_a_turn_whose_worker_dies_every_time_ends_the_run(journey: Journey, boundary: str) -> None:
    """After three attempts an error event says so, and the next message is answered."""
    journey.armed.at(boundary)
    journey.begin().say("say Done.")
    journey.until_crashed()
    for _ in range(2):
        journey.armed.at(boundary)
        journey.until_crashed()
    seen = journey.until_idle()
    assert seen.session.stop_reason == {"type": "retries_exhausted"}
    assert "lost 3 times" in seen.of("session.error")[0].body["error"]["message"]
    journey.say("say Here.")
    journey.until(lambda seen: seen.of("agent.message"))


def test_a_shell_that_eats_all_memory_is_ended_and_says_so(journey: Journey) -> None:
    """None of its processes lives on, so its end is known: the call has a result, and the worker takes the next call."""
    eats = "echo effect >> effects; x=a; while :; do x=$x$x; done"
    journey.begin(bash="always_allow").say(bash(eats), "then", bash("echo effect >> effects"), "then", "say Done.")
    seen = journey.until_idle()
    assert not seen.approvals
    first, second = seen.calls
    assert (first.status, first.is_error, first.attempt) == ("done", True, 1)
    assert (second.status, second.is_error) == ("done", False)
    assert journey.effects() == 2
    assert workers_live(seen)
