"""The process that takes a client's events may die before or after it has stored them."""

from dataclasses import asdict
from typing import Any

import pytest
from crashes.boundaries import of
from crashes.journey import EFFECT, Journey, send_task

RECEIVE = of("receive")
MESSAGE = {"type": "user.message", "content": [{"type": "text", "text": f"{EFFECT}\nthen\nsay Done."}]}


def post(journey: Journey, boundary: str, event: dict[str, Any]) -> None:
    """Post an event through a process that dies at the boundary. From then on the beat beats."""
    journey.armed.at(boundary)
    who = asdict(journey.stage.principal) | {"scopes": []}
    send_task("door.receive", journey.session_id, who, [event])
    journey.until_crashed()


@pytest.mark.parametrize("boundary", RECEIVE)
def test_a_message_is_stored_and_answered_or_not_stored(journey: Journey, boundary: str) -> None:
    """The dispatch sweep finds a committed message; one that was not committed leaves nothing."""
    journey.begin(bash="always_allow")
    post(journey, boundary, MESSAGE)
    if boundary == "receive.before_commit":
        assert not journey.look().events
        journey.stage.send(journey.session_id, MESSAGE)
    seen = journey.until(lambda seen: seen.turns and seen.session.status == "idle")
    assert len(seen.of("user.message")) == 1
    assert journey.effects() == 1


@pytest.mark.parametrize("boundary", RECEIVE)
def test_a_decision_is_stored_once_however_often_its_client_tries(journey: Journey, boundary: str) -> None:
    """The same decision again gets the first decision as its response."""
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    approval = journey.until_asked()
    confirmation = {"type": "user.tool_confirmation", "tool_use_id": approval.tool_call_id, "result": "allow"}
    post(journey, boundary, confirmation)
    again = [journey.stage.confirm(journey.session_id, approval.tool_call_id).id for _ in range(2)]
    seen = journey.until_idle()
    assert {e.id for e in seen.of("user.tool_confirmation")} == set(again)
    assert journey.effects() == 1
