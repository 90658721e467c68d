"""A client's late retry of its first allow, after the call became unknown, decides nothing."""

import pytest
from crashes.journey import EFFECT, Journey

from models.errors import Conflict, Invalid


def test_a_repeated_allow_gets_the_first_decision(journey: Journey) -> None:
    """The outcome of the only run is unknown. The same allow, however often it comes, neither runs the call nor settles it."""
    journey.armed.at("effect.after")
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    approval = journey.until_asked()
    first = journey.stage.confirm(journey.session_id, approval.tool_call_id)
    journey.until_crashed()
    journey.until_asked("unknown_outcome")
    for _ in range(5):
        assert journey.stage.confirm(journey.session_id, approval.tool_call_id).id == first.id
        assert journey.stage.decide(approval, result="allow") == first.id
        journey.sweep()
    with pytest.raises(Conflict) as refusal:
        journey.stage.confirm(journey.session_id, approval.tool_call_id, "deny")
    assert refusal.value.winner["status"] == "allowed"
    seen = journey.look()
    assert seen.call("bash").status == "unknown"
    assert len(seen.attempts) == 1
    journey.settle_unknown()
    journey.until_idle()
    assert journey.stage.confirm(journey.session_id, approval.tool_call_id).id == first.id
    assert journey.effects() == 1


def test_only_an_outcome_settles_an_unknown_call(journey: Journey) -> None:
    """A plain allow is refused, a plain deny gives up, and neither runs the call."""
    journey.armed.at("effect.before")
    journey.begin(bash="always_allow").say(EFFECT, "then", "say Done.")
    journey.until_crashed()
    unknown = journey.until_asked("unknown_outcome")
    with pytest.raises(Invalid):
        journey.stage.decide(unknown, result="allow")
    journey.stage.decide(unknown, result="deny")
    seen = journey.until_idle()
    assert seen.call("bash").is_error
    assert len(seen.attempts) == 1
    assert journey.effects() == 0


def test_each_decision_to_rerun_runs_the_call_once(journey: Journey) -> None:
    """Two crashes, two reruns: each is a decision of its own. A repeated decision changes nothing."""
    journey.armed.at("effect.before")
    journey.begin(bash="always_allow").say(EFFECT, "then", "say Done.")
    journey.until_crashed()
    first = journey.until_asked("unknown_outcome")
    journey.armed.at("effect.before")
    event_id = journey.stage.decide(first, outcome="rerun")
    journey.until_crashed()
    second = journey.until_asked("unknown_outcome")
    assert second.id != first.id
    assert journey.stage.decide(first, outcome="rerun") == event_id
    assert len(journey.look().attempts) == 2
    journey.stage.decide(second, outcome="rerun")
    seen = journey.until_idle()
    assert len(seen.attempts) == 3
    assert journey.effects() == 1
