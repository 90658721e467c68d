"""A run is ended while a tool runs. The tool is told, then killed. Its result is stored, and nothing follows."""

from typing import Any

import pytest
from crashes.effects import SERVERS, Ledger, call
from crashes.invariants import Seen
from crashes.journey import Journey, bash
from crashes.processes import wait_for

NEVER = ("then", "say Never.")
TOLD = bash("trap 'echo effect >> effects; exit 3' TERM; echo begun; echo effect >> effects; while :; do sleep 0.05; done")
STUBBORN = bash("trap '' TERM; echo begun; echo effect >> effects; while :; do sleep 0.05; done")


def ended(journey: Journey) -> Seen:
    """How the session rests after somebody ended its run; then it takes a message, and the model answers."""
    journey.interrupt()
    assert journey.look().session.status == "stopping", "the run is over once the tool is"
    seen = journey.until_idle()
    assert seen.session.stop_reason == {"type": "end_turn", "ended_by": str(journey.stage.principal)}
    assert len(seen.turns) == len(seen.attempts) == 1, "no new turn, no other attempt"
    assert not seen.approvals, "nobody is asked what became of it"
    assert not seen.of("agent.message"), "nothing is said after it"
    journey.say("say Here I am.")
    after = journey.until(lambda seen: seen.of("agent.message") and seen.session.status == "idle")
    assert after.session.stop_reason == {"type": "end_turn"}
    assert len(after.turns) == 2
    assert after.result() == seen.result()
    return seen


def texts(result: Any) -> str:
    """What a result says."""
    return "\n".join(block["text"] for block in result)


@pytest.mark.parametrize(("command", "effects"), [(TOLD, 2), (STUBBORN, 1)], ids=["told", "stubborn"])
def test_a_command_is_told_and_killed_and_what_it_said_is_kept(journey: Journey, command: str, effects: int) -> None:
    """It has a moment to clean up; its end is known, so that it is done, with its output."""
    journey.begin(bash="always_allow").say(command, *NEVER)
    wait_for("it runs", journey.effects)
    seen = ended(journey)
    (found,) = seen.calls
    assert (found.status, found.is_error) == ("done", True)
    assert "begun" in texts(seen.result())
    assert "cancelled; its processes were killed" in texts(seen.result())
    assert journey.effects() == effects


def test_a_function_that_watches_for_it_says_what_it_got_done(journey: Journey, ledger: Ledger) -> None:
    """Its result is the call's result, and its process takes the next call."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", "until told"), *NEVER)
    (run,) = running(journey, ledger)
    seen = ended(journey)
    (found,) = seen.calls
    assert (found.status, found.is_error) == ("done", False)
    assert texts(seen.result()) == "stopped half-way, as I was told"
    assert [a.outcome for a in seen.attempts] == ["done"]
    assert run.lives
    assert ledger.effects(journey.session_id) == 1


def test_a_function_that_ignores_it_is_killed_and_its_outcome_is_unknown(journey: Journey, ledger: Ledger) -> None:
    """The model is told that it may or may not have taken effect."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", "stubborn"), *NEVER)
    (run,) = running(journey, ledger)
    seen = ended(journey)
    (found,) = seen.calls
    assert (found.status, found.is_error) == ("cancelled", True)
    assert "it may or may not have taken effect" in texts(seen.result())
    assert [a.outcome for a in seen.attempts] == ["cancelled"]
    assert not run.lives
    assert ledger.effects(journey.session_id) == 1


def test_what_is_idempotent_does_not_run_again_after_the_end(journey: Journey, ledger: Ledger) -> None:
    """A tool that ignores the end is killed, and not queued again."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("put", "stubborn"), *NEVER)
    running(journey, ledger)
    assert ended(journey).calls[0].status == "cancelled"
    assert len(ledger.runs(journey.session_id)) == 1


def test_a_worker_that_dies_of_it_leaves_nothing_to_decide(journey: Journey, ledger: Ledger) -> None:
    """The function has returned, and the worker is gone before it says so: the sweep ends the run, and asks nobody."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", "until told"), *NEVER)
    running(journey, ledger)
    journey.armed.at("effect.after")
    journey.interrupt()
    journey.until_crashed()
    seen = journey.until_idle()
    assert not seen.approvals
    assert seen.calls[0].status == "cancelled"
    assert "it may or may not have taken effect" in texts(seen.result())


def running(journey: Journey, ledger: Ledger) -> list[Any]:
    """Who runs the call, once it has taken effect."""
    wait_for("it takes effect", lambda: ledger.effects(journey.session_id))
    return ledger.runs(journey.session_id)
