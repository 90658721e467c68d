"""A message that comes while the model answers, a tool runs or a person thinks is read in the next turn."""

from crashes.invariants import Seen
from crashes.journey import EFFECT, Journey, bash
from crashes.processes import wait_for

LATER = "say Later."


def read_last(seen: Seen) -> bool:
    """True if the last turn read only the later message and answered it."""
    prompt, reply = seen.prompt(seen.turns[-1]), seen.of("agent.message")[-1].body["content"]
    return prompt == [{"type": "text", "text": LATER}] and reply == [{"type": "text", "text": "Later."}]


def test_a_message_while_the_model_replies_gets_a_turn_of_its_own(journey: Journey) -> None:
    journey.begin().say("delay 0.3s", "say First.")
    journey.until(lambda seen: seen.turns[0].status == "running")
    assert journey.say(LATER).processed_at is None
    seen = journey.until_idle()
    assert [t.count for t in seen.turns] == [1, 1]
    assert read_last(seen)


def test_a_message_during_a_reply_with_a_call_comes_after_the_result(journey: Journey) -> None:
    journey.begin(bash="always_allow").say("delay 0.3s", EFFECT)
    journey.until(lambda seen: seen.turns[0].status == "running")
    journey.say(LATER)
    seen = journey.until_idle()
    assert [b["type"] for b in seen.messages[2]["content"]] == ["tool_result", "text"]
    assert read_last(seen)


def test_a_message_while_a_tool_runs_begins_a_new_count_of_turns(journey: Journey) -> None:
    journey.begin(bash="always_allow").say(EFFECT, "then", bash("echo effect >> effects; until [ -e go ]; do sleep 0.02; done"))
    wait_for("the second call runs", lambda: journey.effects() == 2)
    journey.say(LATER)
    (journey.workdirs / journey.session_id / "files" / "go").touch()
    seen = journey.until_idle()
    assert [t.count for t in seen.turns] == [1, 2, 1]
    assert read_last(seen)


def test_a_message_while_a_call_waits_is_read_after_the_decision(journey: Journey) -> None:
    journey.begin(bash="always_ask").say(EFFECT)
    journey.until_asked()
    journey.say(LATER)
    assert journey.look().session.status == "waiting"
    journey.decide(result="deny")
    assert read_last(journey.until_idle())


def test_a_message_before_a_retry_is_read_by_the_retry(journey: Journey) -> None:
    journey.begin().say("fail 529 1 times retry-after 60", "say First.")
    journey.until(lambda seen: seen.session.status == "rescheduling")
    journey.say(LATER)
    journey.later(61)
    seen = journey.until_idle()
    assert len(seen.turns) == 1
    assert seen.of("agent.message")[-1].body["content"] == [{"type": "text", "text": "Later."}]


def test_a_message_after_an_interrupt_is_answered(journey: Journey) -> None:
    journey.begin(bash="always_allow").say(bash("echo effect >> effects; sleep 60"))
    wait_for("the call runs", lambda: journey.effects() == 1)
    message = {"type": "user.message", "content": [{"type": "text", "text": LATER}]}
    journey.stage.send(journey.session_id, {"type": "user.interrupt"}, message)
    assert read_last(journey.until_idle())
