"""A worker is stopped past its lease and comes back. Its report changes only its own attempt's row."""

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
    """One session."""
    return journeys()


def sleep_past_lease(journey: Journey, worker: Worker) -> None:
    """Stop the worker in the middle of a call, and let its lease run out."""
    seen = journey.until(lambda seen: [a for a in seen.attempts if "beg" in (a.output or "")])
    assert worker.has(seen.calls[0].worker)
    worker.sleep()
    journey.clock.advance(LEASE)


def come_back(journey: Journey, worker: Worker) -> Seen:
    """Wake the worker, and wait for its late result. Only the first attempt and the audit change. Returns the rows."""
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


@pytest.mark.parametrize("settled_first", [False, True], ids=["the-result-first", "the-person-first"])
def test_a_late_result_is_stored_with_the_attempt_alone(
    journey: Journey, ledger: Ledger, workers: dict[str, Worker], settled_first: bool
) -> None:
    """A person settles the outcome, whatever the worker reports before or after."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", "wait after"), "then", "say Done.")
    sleep_past_lease(journey, workers["tools"])
    workers["all"].wake()
    unknown = journey.until_asked("unknown_outcome")
    assert unknown.attempt_told
    assert unknown.attempt_told["output"] == "attempt 1 of charge began\n"
    ledger.open_gate(journey.session_id)
    if settled_first:
        journey.stage.decide(unknown, outcome="happened", content=NEW)
        journey.until_idle()
    seen = come_back(journey, workers["tools"])
    assert (seen.attempts[0].late_result or {})["content"] == [{"type": "text", "text": "done at attempt 1"}]
    if not settled_first:
        journey.stage.decide(unknown, outcome="happened", content=NEW)
    seen = journey.until_idle()
    assert seen.result() == list(NEW)
    assert [a.outcome for a in seen.attempts] == ["unknown"]
    assert ledger.effects(journey.session_id) == 1


def test_a_command_that_slept_before_its_effect_never_has_it(journey: Journey, workers: dict[str, Worker]) -> None:
    """The worker notices first that it lost the call, and ends the command. The call runs again when a person says so."""
    journey.begin(bash="always_allow").say(SLEEPS_IN_VAIN, "then", "say Done.")
    sleep_past_lease(journey, workers["tools"])
    workers["all"].wake()
    unknown = journey.until_asked("unknown_outcome")
    seen = come_back(journey, workers["tools"])
    assert "cancelled" in str(seen.attempts[0].late_result)
    (journey.workdirs / journey.session_id / "files" / "go").touch()
    assert journey.effects() == 0
    journey.stage.decide(unknown, outcome="rerun")
    seen = journey.until_idle()
    assert [a.outcome for a in seen.attempts] == ["unknown", "done"]
    assert journey.effects() == 1


def test_an_idempotent_call_has_run_at_another_worker(journey: Journey, ledger: Ledger, workers: dict[str, Worker]) -> None:
    """The other worker's result counts. Both runs have one key, and one effect."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("put", "wait before"), "then", "say Done.")
    sleep_past_lease(journey, workers["tools"])
    workers["all"].wake()
    seen = journey.until_idle()
    assert workers["all"].has(seen.calls[0].worker)
    ledger.open_gate(journey.session_id)
    come_back(journey, workers["tools"])
    seen = journey.until_idle()
    assert not seen.approvals
    assert seen.result() == [{"type": "text", "text": "done at attempt 2"}]
    assert [a.outcome for a in seen.attempts] == ["lost", "done"]
    assert {run.key for run in ledger.runs(journey.session_id)} == {seen.calls[0].id}
    assert ledger.effects(journey.session_id) == 1


def test_a_late_reply_is_not_stored(journey: Journey, workers: dict[str, Worker]) -> None:
    """Another worker stores the only reply. The first worker's fence is stale, and it reports only its usage."""
    journey.begin().say("say 30 tokens at 60/s")
    seen = journey.until(lambda seen: seen.turns and seen.turns[0].status == "running")
    assert workers["turns"].has(seen.turns[0].worker)
    workers["turns"].sleep()
    interrupted = workers["turns"].under_way
    assert interrupted
    assert not journey.look().of("agent.message"), "the worker was stopped in the middle of its reply"
    journey.clock.advance(LEASE)
    workers["all"].wake()
    seen = journey.until_idle()
    assert workers["all"].has(seen.turns[0].worker)
    assert [(t.status, t.attempt, t.losses) for t in seen.turns] == [("done", 2, 1)]
    before = photograph(seen)
    workers["turns"].wake()
    wait_for("the first worker ends the turn", lambda: not interrupted & workers["turns"].under_way)
    after = journey.until_idle()
    now = photograph(after)
    del before["session"][0]["usage"], now["session"][0]["usage"]
    assert now == before
    assert len(after.of("agent.message")) == 1
