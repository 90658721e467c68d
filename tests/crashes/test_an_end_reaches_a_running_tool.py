"""A run is ended while a tool runs. The tool is told, then killed. Its result is stored, and nothing follows."""

from typing import Any

import pytest
from crashes.effects import SERVERS, Ledger, call
from crashes.invariants import Seen
from crashes.journey import Journey, bash
from crashes.processes import wait_for

NEVER = ("then", "say Never.")
CLEANING_UP = bash("trap 'echo effect >> effects; exit 3' TERM; echo begun; echo effect >> effects; while :; do sleep 0.05; done")
STUBBORN = bash("trap '' TERM; echo begun; echo effect >> effects; while :; do sleep 0.05; done")


def end_run(journey: Journey) -> Seen:
    """End the run. Returns the session's rows at rest, after which the next message is answered."""
    journey.interrupt()
    assert journey.look().session.status == "stopping", "the run is over once the tool is"
    seen = journey.until_idle()
    assert seen.session.stop_reason == {"type": "end_turn", "ended_by": str(journey.stage.principal)}
    assert len(seen.turns) == len(seen.attempts) == 1, "no new turn, no other attempt"
    assert not seen.approvals, "nobody is asked about the outcome"
    assert not seen.of("agent.message"), "nothing is said after it"
    journey.say("say Here I am.")
    after = journey.until(lambda seen: seen.of("agent.message") and seen.session.status == "idle")
    assert after.session.stop_reason == {"type": "end_turn"}
    assert len(after.turns) == 2
    assert after.result() == seen.result()
    return seen


def texts(result: Any) -> str:
    """The texts of a result."""
    return "\n".join(block["text"] for block in result)


@pytest.mark.parametrize(("command", "effects"), [(CLEANING_UP, 2), (STUBBORN, 1)], ids=["cleaning up", "stubborn"])
def test_a_command_is_told_then_killed_and_its_output_is_stored(journey: Journey, command: str, effects: int) -> None:
    """The command has a moment to clean up. Its end is known, so the call is done, with its output."""
    journey.begin(bash="always_allow").say(command, *NEVER)
    wait_for("it runs", journey.effects)
    seen = end_run(journey)
    (tool_call,) = seen.calls
    assert (tool_call.status, tool_call.is_error) == ("done", True)
    assert "begun" in texts(seen.result())
    assert "cancelled; its processes were killed" in texts(seen.result())
    assert journey.effects() == effects


def test_a_function_that_watches_for_the_end_returns_its_result(journey: Journey, ledger: Ledger) -> None:
    """Its result is the call's result, and its process takes the next call."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", "until told"), *NEVER)
    (run,) = running_call(journey, ledger)
    seen = end_run(journey)
    (tool_call,) = seen.calls
    assert (tool_call.status, tool_call.is_error) == ("done", False)
    assert texts(seen.result()) == "stopped half-way, as I was told"
    assert [a.outcome for a in seen.attempts] == ["done"]
    assert run.lives
    assert ledger.effects(journey.session_id) == 1


def test_a_function_that_ignores_the_end_is_killed_and_the_model_is_told(journey: Journey, ledger: Ledger) -> None:
    """The result says that the call may or may not have taken effect."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", "stubborn"), *NEVER)
    (run,) = running_call(journey, ledger)
    seen = end_run(journey)
    (tool_call,) = seen.calls
    assert (tool_call.status, tool_call.is_error) == ("cancelled", True)
    assert "it may or may not have taken effect" in texts(seen.result())
    assert [a.outcome for a in seen.attempts] == ["cancelled"]
    assert not run.lives
    assert ledger.effects(journey.session_id) == 1


def test_an_idempotent_call_does_not_run_again_after_the_end(journey: Journey, ledger: Ledger) -> None:
    """The function ignores the end, is killed, and is not queued again."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("put", "stubborn"), *NEVER)
    running_call(journey, ledger)
    assert end_run(journey).calls[0].status == "cancelled"
    assert len(ledger.runs(journey.session_id)) == 1


def test_a_worker_that_dies_during_the_end_leaves_nothing_to_decide(journey: Journey, ledger: Ledger) -> None:
    """The function has returned, and the worker dies before it stores the result. The sweep ends the run, and asks nobody."""
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", "until told"), *NEVER)
    running_call(journey, ledger)
    journey.armed.at("effect.after")
    journey.interrupt()
    journey.until_crashed()
    seen = journey.until_idle()
    assert not seen.approvals
    assert seen.calls[0].status == "cancelled"
    assert "it may or may not have taken effect" in texts(seen.result())


def running_call(journey: Journey, ledger: Ledger) -> list[Any]:
    """Wait until the call takes effect. Returns its runs."""
    wait_for("it takes effect", lambda: ledger.effects(journey.session_id))
    return ledger.runs(journey.session_id)
