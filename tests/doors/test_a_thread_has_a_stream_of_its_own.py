"""Each thread of a session is listed, and has a stream of its own, beside the session's."""

from typing import Any

import pytest
from doors.reading import Stream, stream
from doors.served import Caller, bad, good
from doors.stream_frames import delta, publish, start
from rows.stage import Stage, say
from rows.threads import Child

from api.streams.reader import Reader
from api.streams.stream import following
from models.database.transactions import transaction


@pytest.fixture
def child(caller: Caller, stage: Stage) -> Child:
    """A thread that the own thread of a session began. Both have a message to read."""
    session_id = caller.session()["id"]
    stage.message(session_id)
    return Child(stage, session_id)


def threads(caller: Caller, session_id: str, **query: Any) -> dict[str, Any]:
    """A page of a session's threads."""
    return good(caller.get(f"/v1/sessions/{session_id}/threads", params=query))


def of_child(child: Child) -> str:
    """The path of the thread's stream."""
    return f"/v1/sessions/{child.session_id}/threads/{child.id}/stream"


def ids(page: dict[str, Any]) -> list[str]:
    """The ids of a page's rows."""
    return [row["id"] for row in page["data"]]


def test_threads_are_listed_oldest_first_by_pages_and_by_status(caller: Caller, stage: Stage, child: Child) -> None:
    own, other = stage.thread(child.session_id).id, Child(stage, child.session_id, "Other")
    first = threads(caller, child.session_id, limit=2)
    assert ids(first) == [own, child.id]
    last = threads(caller, child.session_id, limit=2, page=first["next_page"])
    assert (ids(last), last["next_page"]) == ([other.id], None)
    child.propose()
    other.reply(say("Done."))
    assert ids(threads(caller, child.session_id, **{"statuses[]": "idle"})) == [child.id, other.id]
    assert ids(threads(caller, child.session_id, **{"statuses[]": ["running", "terminated"]})) == [own]
    bad(caller.get(f"/v1/sessions/{child.session_id}/threads", params={"page": "x"}), 400, "page")
    [_, row, _] = threads(caller, child.session_id)["data"]
    assert (row["parent_thread_id"], row["status"], row["usage"]["output_tokens"]) == (own, "idle", 5)


def test_a_thread_s_list_and_stream_are_alike_and_the_session_s_has_less_of_it(caller: Caller, stage: Stage, child: Child) -> None:
    with stream(caller, child.session_id, path=of_child(child)) as own, stream(caller, child.session_id) as session:
        asked = child.propose()
        stage.confirm(child.session_id, asked.id)
        stage.run_call(asked)
        child.reply(say("Done."))
        stage.reply(child.session_id, say("Done."))
        streamed = idle(own) + idle(own)
        of_session = session.until("session.status_idle")
    listed = good(caller.get(f"/v1/sessions/{child.session_id}/threads/{child.id}/events", params={"limit": 1000}))["data"]
    assert streamed == listed[-len(streamed) :]
    assert not any("session_thread_id" in event for event in listed if event["type"] == "agent.tool_use")
    calls = {frame.data["session_thread_id"] for frame in of_session if frame.data.get("id") == asked.id}
    assert calls == {child.id}, "the session's stream says whose call it is"
    assert {frame.event for frame in of_session} & {"agent.tool_result"} == set()
    assert [frame.data for frame in of_session] == caller.events(child.session_id, limit=1000)[-len(of_session) :]


def idle(opened: Stream) -> list[dict[str, Any]]:
    """The events up to the next at which the thread is idle."""
    return [frame.data for frame in opened.until("session.thread_status_idle")]


def test_deltas_reach_the_readers_of_their_own_thread(caller: Caller, stage: Stage, child: Child, redis_url: str) -> None:
    deltas = {"event_deltas[]": "agent.message"}
    with (
        stream(caller, child.session_id, path=of_child(child), **deltas) as theirs,
        stream(caller, child.session_id, **deltas) as session,
    ):
        publish(redis_url, child.session_id, start("sevt_a"), delta("sevt_a", "Mine"), thread_id=child.id)
        publish(
            redis_url, child.session_id, start("sevt_b"), delta("sevt_b", "Theirs"), thread_id=stage.thread(child.session_id).id
        )
        seen = [[opened.until("event_delta")[-1].data["delta"]["content"]["text"]] for opened in (theirs, session)]
        child.reply(say("Mine"))
        stage.reply(child.session_id, say("Theirs"))
        rests = [theirs.until("session.thread_status_idle"), session.until("session.status_idle")]
    assert seen == [["Mine"], ["Theirs"]]
    assert not [frame for frames in rests for frame in frames if frame.event == "event_delta"]


def test_a_stream_reads_no_body_of_another_thread_s_events(stage: Stage, child: Child) -> None:
    asked = child.propose(command="x" * 1000)
    stage.confirm(child.session_id, asked.id)
    stage.run_call(asked, "y" * 1000)
    with transaction(stage.workspace_id) as db:
        events, _ = following(db, Reader(child.session_id, "key_test", thread_id=stage.thread(child.session_id).id))
    bodies = {event.type: event.body for event in events if event.thread_id == child.id}
    assert bodies["agent.tool_use"]["input"] == {"command": "x" * 1000}
    assert bodies["agent.tool_result"] == {}


def test_a_thread_s_stream_ends_with_the_thread(caller: Caller, child: Child) -> None:
    child.reply(say("Done."))
    with stream(caller, child.session_id, path=of_child(child)) as opened:
        good(caller.post(f"/v1/sessions/{child.session_id}/threads/{child.id}/archive"))
        ended = [frame.data["id"] for frame in opened.rest()]
    with stream(caller, child.session_id, path=of_child(child)) as opened:
        [last] = opened.rest()
    assert (last.event, last.data["id"]) == ("session.thread_status_terminated", ended[-1])
    with stream(caller, child.session_id, last=last.id, path=of_child(child)) as opened:
        assert opened.rest() == []
