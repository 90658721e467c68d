"""A worker is stopped past its lease and comes back. It changes no row but its own attempt's."""

from collections.abc import Callable

import pytest
from crashes.effects import SERVERS, Ledger, call
from crashes.invariants import Seen
from crashes.journey import LEASE, Journey, bash
from crashes.processes import wait_for
from faults.shifts import Worker, photograph

NEW = ({"type": "text", "text": "I looked: it happened."},)
SLEEPS_IN_VAIN = bash("echo begun; until [ -e go ]; do sleep 0.02; done; echo effect >> effects")


@pytest.fixture
def journey(journeys: Callable[[], Journey]) -> Journey:
    """One conversation."""
    return journeys()


def sleeps_past_its_lease(journey: Journey, worker: Worker) -> None:
    """Stop the worker in the middle of a call; when its time is over, it still sleeps. Another worker is there from now on."""
    found = journey.until(lambda seen: [a for a in seen.attempts if "beg" in (a.output or "")])
    assert worker.has(found.calls[0].worker)
    worker.sleep()
    journey.clock.advance(LEASE)


def comes_back(journey: Journey, worker: Worker) -> Seen:
    """Wake the worker, and wait until it has told its result. Nothing but the first attempt and the audit is other than before."""
    before = photograph(journey.look())
    worker.wake()
    after = journey.until(lambda seen: seen.attempts[0].late_result)
    now = photograph(after)
    assert now["audit"][:-1] == before["audit"]
    assert after.audit[-1].action == "tool_call.reported_late"
    late = now["attempts"][0].pop("late_result")
    assert before["attempts"][0].pop("late_result") is None
    assert late["at"]
    for row in (before["session"][0], now["session"][0]):
        del row["audit_seq"], row["audit_head"]
    assert {**now, "audit": []} == {**before, "audit": []}
    return after


@pytest.mark.parametrize("settled_first", [False, True], ids=["it-comes-first", "a-person-comes-first"])
def test_a_result_that_comes_too_late_is_kept_beside(
    journey: Journey, ledger: Ledger, workers: dict[str, Worker], settled_first: bool
) -> None:
    """A person settles the outcome, whatever the worker reports afterwards."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", "wait after"), "then", "say Done.")
    sleeps_past_its_lease(journey, workers["tools"])
    workers["all"].wake()
    unknown = journey.until_asked("unknown_outcome")
    assert unknown.attempt_told
    assert unknown.attempt_told["output"] == "attempt 1 of charge began\n"
    ledger.open_gate(journey.session_id)
    if settled_first:
        journey.stage.decide(unknown, outcome="happened", content=NEW)
        journey.until_idle()
    seen = comes_back(journey, workers["tools"])
    assert (seen.attempts[0].late_result or {})["content"] == [{"type": "text", "text": "done at attempt 1"}]
    if not settled_first:
        journey.stage.decide(unknown, outcome="happened", content=NEW)
    seen = journey.until_idle()
    assert seen.result() == list(NEW)
    assert [a.outcome for a in seen.attempts] == ["unknown"]
    assert ledger.effects(journey.session_id) == 1


def test_a_command_that_has_not_come_to_its_effect_never_does(journey: Journey, workers: dict[str, Worker]) -> None:
    """The worker notices first that it lost the call, and ends it. So the call runs where a person asked for a rerun."""
    journey.begin(bash="always_allow").say(SLEEPS_IN_VAIN, "then", "say Done.")
    sleeps_past_its_lease(journey, workers["tools"])
    workers["all"].wake()
    unknown = journey.until_asked("unknown_outcome")
    seen = comes_back(journey, workers["tools"])
    assert "cancelled" in str(seen.attempts[0].late_result)
    (journey.workdirs / journey.session_id / "files" / "go").touch()
    assert journey.effects() == 0
    journey.stage.decide(unknown, outcome="rerun")
    seen = journey.until_idle()
    assert [a.outcome for a in seen.attempts] == ["unknown", "done"]
    assert journey.effects() == 1


def test_what_is_idempotent_has_run_elsewhere_by_then(journey: Journey, ledger: Ledger, workers: dict[str, Worker]) -> None:
    """The other worker's result counts; both ran under one key, and took effect once."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("put", "wait before"), "then", "say Done.")
    sleeps_past_its_lease(journey, workers["tools"])
    workers["all"].wake()
    seen = journey.until_idle()
    assert workers["all"].has(seen.calls[0].worker)
    ledger.open_gate(journey.session_id)
    comes_back(journey, workers["tools"])
    seen = journey.until_idle()
    assert not seen.approvals
    assert seen.result() == [{"type": "text", "text": "done at attempt 2"}]
    assert [a.outcome for a in seen.attempts] == ["lost", "done"]
    assert {run.key for run in ledger.runs(journey.session_id)} == {seen.calls[0].id}
    assert ledger.effects(journey.session_id) == 1


def test_a_reply_that_comes_too_late_is_not_written(journey: Journey, workers: dict[str, Worker]) -> None:
    """The turn was answered by another worker, once; its first worker finds its fence gone, and reports only its usage."""
    journey.begin().say("say 30 tokens at 60/s")
    seen = journey.until(lambda seen: seen.turns and seen.turns[0].status == "running")
    assert workers["turns"].has(seen.turns[0].worker)
    workers["turns"].sleep()
    interrupted = workers["turns"].under_way
    assert interrupted
    assert not journey.look().of("agent.message"), "it was stopped in the middle"
    journey.clock.advance(LEASE)
    workers["all"].wake()
    seen = journey.until_idle()
    assert workers["all"].has(seen.turns[0].worker)
    assert [(t.status, t.attempt, t.losses) for t in seen.turns] == [("done", 2, 1)]
    before = photograph(seen)
    workers["turns"].wake()
    wait_for("it is done with the turn", lambda: not interrupted & workers["turns"].under_way)
    after = journey.until_idle()
    now = photograph(after)
    del before["session"][0]["usage"], now["session"][0]["usage"]
    assert now == before
    assert len(after.of("agent.message")) == 1
