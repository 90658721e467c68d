"""Without `Last-Event-ID`, a stream begins after its principal's last message, until the principal was streamed the run's end.

Afterwards a stream begins with the events that come after its opening.
"""

import socket
from contextlib import suppress

import pytest
from doors.reading import Frame, stream
from doors.served import Caller, confirmation, good, key, message
from doors.waiting import approval_of
from own_database import Clock
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace import key_lookup


@pytest.fixture
def session_id(caller: Caller) -> str:
    """The id of a session."""
    return str(caller.session()["id"])


def texts(frames: list[Frame]) -> list[str]:
    """Return the model's messages in these frames."""
    return [frame.data["content"][0]["text"] for frame in frames if frame.event == "agent.message"]


def until_idle(caller: Caller, session_id: str) -> list[Frame]:
    """Return a new stream's frames up to the first `session.status_idle`."""
    with stream(caller, session_id) as opened:
        return opened.until("session.status_idle")


def begins_now(caller: Caller, session_id: str) -> bool:
    """Return True if a new stream sends no earlier event: its first event was posted after its opening."""
    with stream(caller, session_id) as opened:
        sent = good(caller.tell(session_id, {"type": "user.interrupt"}))["data"][0]
        return bool(opened.next().data["id"] == sent["id"])


def asked(caller: Caller, stage: Stage, session_id: str) -> ToolCall:
    """Return a waiting call that was streamed to the caller."""
    caller.say(session_id)
    [tool_call] = stage.reply(session_id, call())
    assert until_idle(caller, session_id)[-1].data["stop_reason"]["type"] == "requires_action"
    return tool_call


def test_a_client_that_hung_up_was_not_streamed_the_end(caller: Caller, stage: Stage, session_id: str) -> None:
    """Its end may be noticed only by the write of the run's end."""
    with stream(caller, session_id) as left, stream(caller, session_id) as witness:
        for each in (left, witness):
            with suppress(OSError):
                each.response.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        caller.say(session_id, "Hello.")
        stage.reply(session_id, say("One."))
        with Caller(str(caller.base_url), key(stage)) as other, stream(other, session_id, last=0) as opened:
            opened.until("session.status_idle")
    assert texts(until_idle(caller, session_id)) == ["One."]


def test_another_principal_begins_now(caller: Caller, api: str, stage: Stage, session_id: str) -> None:
    caller.say(session_id)
    stage.reply(session_id, say("One."))
    with Caller(api, key(stage)) as other:
        assert begins_now(other, session_id)
    assert texts(until_idle(caller, session_id)) == ["One."]


def test_the_last_of_several_messages_counts(caller: Caller, stage: Stage, session_id: str) -> None:
    good(caller.tell(session_id, message("One."), message("Two.")))
    stage.reply(session_id, say("Both."))
    frames = until_idle(caller, session_id)
    assert texts(frames) == ["Both."]
    assert "user.message" not in {frame.event for frame in frames}
    assert begins_now(caller, session_id)


def test_a_run_that_waits_for_a_decision_has_not_ended(caller: Caller, api: str, stage: Stage, session_id: str) -> None:
    """Somebody else decides while the sender has no open stream. The sender's next stream goes on where its last one stopped."""
    tool_call = asked(caller, stage, session_id)
    with Caller(api, key(stage)) as other:
        good(other.post(f"/v1/approvals/{approval_of(caller, tool_call)['id']}/decision", json={"result": "allow"}))
        stage.run_call(tool_call)
        stage.reply(session_id, say("Done."))
        for decider in (caller, other):
            frames = until_idle(decider, session_id)
            assert texts(frames) == ["Done."]
            assert "agent.tool_use" not in {frame.event for frame in frames}
            assert begins_now(decider, session_id)


def test_the_same_decision_again_brings_nothing_back(caller: Caller, stage: Stage, session_id: str) -> None:
    tool_call = asked(caller, stage, session_id)
    good(caller.tell(session_id, confirmation(tool_call.id)))
    stage.run_call(tool_call)
    stage.reply(session_id, say("Done."))
    assert texts(until_idle(caller, session_id)) == ["Done."]
    good(caller.tell(session_id, confirmation(tool_call.id)))
    assert begins_now(caller, session_id)


def test_a_deadline_is_no_principal(caller: Caller, stage: Stage, session_id: str, clock: Clock) -> None:
    tool_call = asked(caller, stage, session_id)
    clock.advance(100_000)
    stage.expire(session_id)
    stage.reply(session_id, say("Late."))
    with transaction(stage.workspace_id) as db:
        assert Approval.of_call(db, tool_call)[0].status == "expired"
    assert set(stage.read(session_id).stream_positions) == {principal_id(caller)}
    assert texts(until_idle(caller, session_id)) == ["Late."]


def principal_id(caller: Caller) -> str:
    """Return the id of the caller's key."""
    principal = key_lookup.authenticate(caller.headers["x-api-key"], None)
    assert principal
    return principal.id


def test_a_run_of_somebody_else_forgets_the_last_one(caller: Caller, api: str, stage: Stage, session_id: str) -> None:
    caller.say(session_id, "Mine.")
    stage.reply(session_id, say("One."))
    with Caller(api, key(stage)) as other:
        other.say(session_id, "Theirs.")
        stage.reply(session_id, say("Two."))
        assert begins_now(caller, session_id)
        assert texts(until_idle(other, session_id)) == ["Two."]


def test_the_initial_events_of_a_session_count_as_sent(caller: Caller, stage: Stage) -> None:
    session_id = caller.session(initial_events=[message("Go.")])["id"]
    stage.reply(session_id, say("Gone."))
    assert texts(until_idle(caller, session_id)) == ["Gone."]
    assert begins_now(caller, session_id)


def test_an_archived_session_still_streams_its_last_run(caller: Caller, stage: Stage, session_id: str) -> None:
    caller.say(session_id)
    stage.reply(session_id, say("One."))
    good(caller.post(f"/v1/sessions/{session_id}/archive"))
    with stream(caller, session_id) as opened:
        frames = opened.rest()
    assert texts(frames) == ["One."]
    assert frames[-1].event == "session.status_terminated"
    with stream(caller, session_id) as opened:
        assert [frame.event for frame in opened.rest()] == ["session.status_terminated"]
