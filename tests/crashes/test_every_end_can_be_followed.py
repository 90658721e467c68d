"""After each way in which a run can end, the model accepts the history and answers the next message."""

from collections.abc import Callable

import pytest
from crashes.journey import EFFECT, Journey, bash
from crashes.processes import wait_for

from models.settings import settings

WAYS: list[Callable[[Journey], str]] = []
"""Functions that drive a session to an end, and return the type of the stop reason."""
SLOWLY = "say 4000 tokens at 400/s"
FOR_LONG = bash("echo effect >> effects; sleep 60")


def way(function: Callable[[Journey], str]) -> Callable[[Journey], str]:
    WAYS.append(function)
    return function


@way
def denied(journey: Journey) -> str:
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Fine.")
    journey.decide(result="deny", deny_message="Not today.")
    return "end_turn"


@way
def denied_by_policy(journey: Journey) -> str:
    journey.begin(bash="never").say(EFFECT, "then", "say Fine.")
    return "end_turn"


@way
def denied_with_interrupt(journey: Journey) -> str:
    journey.begin(bash="always_ask").say(EFFECT, EFFECT, "then", "say Never.")
    journey.until(lambda seen: len(seen.pending) == 2)
    journey.decide(result="deny", interrupt=True)
    return "end_turn"


@way
def interrupted_while_the_model_answers(journey: Journey) -> str:
    journey.begin().say(SLOWLY)
    journey.until(lambda seen: seen.turns[0].status == "running")
    journey.interrupt()
    return "end_turn"


@way
def interrupted_before_the_model_was_asked(journey: Journey) -> str:
    journey.begin().stage.send(
        journey.session_id,
        {"type": "user.message", "content": [{"type": "text", "text": SLOWLY}]},
        {"type": "user.interrupt"},
    )
    return "end_turn"


@way
def interrupted_while_a_call_waits(journey: Journey) -> str:
    journey.begin(bash="always_ask").say("say I would like to:", EFFECT, "then", "say Never.")
    journey.until_asked()
    journey.interrupt()
    return "end_turn"


@way
def interrupted_while_a_tool_runs(journey: Journey) -> str:
    journey.begin(bash="always_allow").say(FOR_LONG, "then", "say Never.")
    wait_for("the call runs", journey.effects)
    journey.interrupt()
    return "end_turn"


@way
def interrupted_while_the_client_works(journey: Journey) -> str:
    journey.begin(custom=("lookup",)).say('call lookup {"n": 1}', "then", "say Never.")
    journey.until(lambda seen: seen.session.status == "waiting")
    journey.interrupt()
    return "end_turn"


@way
def interrupted_while_the_model_is_overloaded(journey: Journey) -> str:
    journey.begin().say("fail 529 always retry-after 3600")
    journey.until(lambda seen: seen.session.status == "rescheduling")
    journey.interrupt()
    return "end_turn"


@way
def interrupted_while_an_outcome_is_unknown(journey: Journey) -> str:
    journey.begin(bash="always_allow").say(bash("kill -9 $PPID; sleep 60"), "then", "say Never.")
    journey.until_asked("unknown_outcome")
    journey.interrupt()
    return "end_turn"


@way
def expired(journey: Journey) -> str:
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Fine.")
    journey.until_asked()
    journey.later(settings().approval_seconds)
    return "end_turn"


@way
def given_up(journey: Journey) -> str:
    journey.begin(bash="always_allow").say(bash("kill -9 $PPID; sleep 60"), "then", "say Fine.")
    journey.stage.decide(journey.until_asked("unknown_outcome"), outcome="give_up")
    return "end_turn"


@way
def unknown_for_too_long(journey: Journey) -> str:
    journey.begin(bash="always_allow").say(bash("kill -9 $PPID; sleep 60"), "then", "say Fine.")
    journey.until_asked("unknown_outcome")
    journey.later(settings().approval_seconds)
    return "end_turn"


@way
def at_the_turn_limit(journey: Journey) -> str:
    journey.begin(max_turns=2, bash="always_allow").say(f"loop {EFFECT}")
    return "end_turn"


@way
def with_calls_that_cannot_be_asked(journey: Journey) -> str:
    journey.begin(bash="always_ask").say('call nosuch {"a": 1}', 'call bash {"nosuch": 1}', "then", "say Fine.")
    return "end_turn"


@way
def refused_by_the_model(journey: Journey) -> str:
    journey.begin(bash="always_allow").say(EFFECT, "then", "say I begin, and", "refuse I would rather not.")
    return "refusal"


@way
def cut_at_max_tokens(journey: Journey) -> str:
    journey.begin().say("say So far", "max_tokens")
    return "end_turn"


@way
def cut_in_the_middle_of_a_call(journey: Journey) -> str:
    journey.begin(bash="always_allow").say("say So far", EFFECT, f"cut {EFFECT}")
    return "end_turn"


@way
def with_an_empty_reply(journey: Journey) -> str:
    journey.begin().say("max_tokens")
    return "end_turn"


@way
def with_retries_exhausted(journey: Journey) -> str:
    journey.beats = True
    journey.begin().say("fail 529 always")
    return "retries_exhausted"


@way
def with_retries_exhausted_after_a_call(journey: Journey) -> str:
    journey.beats = True
    journey.begin(bash="always_allow").say(EFFECT, "then", "fail 529 mid-stream always", "say Never.")
    return "retries_exhausted"


@way
def with_an_error_that_stays(journey: Journey) -> str:
    journey.begin().say("fail 400 always")
    return "retries_exhausted"


@way
def with_workers_that_keep_dying(journey: Journey) -> str:
    journey.armed.at(*["model.before"] * 3)
    journey.begin().say("say Never.")
    for left in (2, 1, 0):
        wait_for("a worker dies", lambda left=left: len(journey.armed.left) <= left)
        journey.later()
        journey.sweep()
    return "retries_exhausted"


@pytest.mark.parametrize("end", WAYS, ids=lambda way: way.__name__)
def test_the_next_message_gets_a_normal_reply(journey: Journey, end: Callable[[Journey], str]) -> None:
    """The stand-in refuses the requests that the real API refuses, such as a call without its result."""
    reason = end(journey)
    seen = journey.until_idle()
    assert (seen.session.stop_reason or {})["type"] == reason
    turns = len(seen.turns)
    assert not any(e.body["content"][-1]["text"] in {"Never.", SLOWLY} for e in seen.of("agent.message"))
    journey.say("say Still here.")
    seen = journey.until_idle()
    assert seen.session.stop_reason == {"type": "end_turn"}
    assert seen.of("agent.message")[-1].body["content"] == [{"type": "text", "text": "Still here."}]
    assert len(seen.turns) == turns + 1
