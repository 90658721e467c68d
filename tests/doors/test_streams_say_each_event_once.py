"""A stream begins now or after `Last-Event-ID`, and sends each event once and in order, also without Redis."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import redis
from crashes.processes import wait_for
from doors.reading import Stream, stream
from doors.served import Caller, bad, confirmation, good, key, message, served
from doors.stream_frames import delta, publish, publish_so_far, start
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.workspace.api_key import ApiKey, NewKey


def ids(opened: Stream, last: str) -> list[str]:
    """Return the ids of the streamed events up to the event `last`."""
    event_ids = [opened.next().data["id"]]
    while event_ids[-1] != last:
        event_ids.append(opened.next().data["id"])
    return event_ids


def listed(caller: Caller, session_id: str, **query: Any) -> list[str]:
    """Return the ids of the stored events."""
    return [e["id"] for e in caller.events(session_id, limit=1000, **query)]


@pytest.fixture
def session_id(caller: Caller) -> str:
    """The id of a session."""
    return str(caller.session()["id"])


def test_the_headers_come_at_once_and_are_those_of_a_stream(caller: Caller, session_id: str) -> None:
    before = time.monotonic()
    with stream(caller, session_id) as opened:
        assert time.monotonic() - before < 2
        headers = opened.response.headers
        assert headers["content-type"].startswith("text/event-stream")
        assert headers["cache-control"] == "no-cache, no-transform"
        assert headers["request-id"].startswith("req_")


def test_a_stream_begins_with_the_events_after_its_opening(caller: Caller, stage: Stage, session_id: str) -> None:
    stage.message(session_id, "Before.")
    stage.reply(session_id, say("Before."))
    before = listed(caller, session_id)
    with stream(caller, session_id) as opened:
        caller.say(session_id, "After.")
        stage.reply(session_id, say("After."))
        frames = opened.until("session.status_idle")
    assert [f.data["id"] for f in frames] == listed(caller, session_id)[len(before) :]
    assert [f.event for f in frames] == [f.data["type"] for f in frames]
    assert [f.id for f in frames] == list(range(len(before) + 1, len(before) + len(frames) + 1))
    assert frames[0].data["content"] == [{"type": "text", "text": "After."}]


def test_a_stream_with_last_event_id_begins_after_that_event(caller: Caller, stage: Stage, session_id: str) -> None:
    caller.say(session_id)
    stage.reply(session_id, say("Done."))
    everything = listed(caller, session_id)
    with stream(caller, session_id, last=0) as opened:
        assert ids(opened, everything[-1]) == everything
    with stream(caller, session_id, last=3) as opened:
        assert ids(opened, everything[-1]) == everything[3:]
    with stream(caller, session_id, last=10**9) as opened:
        caller.say(session_id, "More.")
        assert opened.next().data["content"][0]["text"] == "More."


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "9" * 30, "²"])
def test_an_invalid_last_event_id_is_refused(caller: Caller, session_id: str, value: str) -> None:
    answer = caller.get(f"/v1/sessions/{session_id}/events/stream", headers=[(b"last-event-id", value.encode())])
    bad(answer, 400, "Last-Event-ID")


def test_a_reader_who_reconnects_a_hundred_times_sees_each_event_once_in_order(
    caller: Caller, stage: Stage, session_id: str
) -> None:
    seen: list[str] = []
    last = 0
    for n in range(100):
        caller.say(session_id, f"{n}")
        if n % 10 == 9:
            stage.reply(session_id, say("Done."))
        with stream(caller, session_id, last=last) as opened:
            frame = opened.next()
            seen.append(frame.data["id"])
            assert frame.id
            last = frame.id
    with stream(caller, session_id, last=last) as opened:
        everything = listed(caller, session_id)
        if len(seen) < len(everything):
            seen += ids(opened, everything[-1])
    assert seen == everything


def test_a_reader_who_opens_a_stream_lists_and_deduplicates_misses_nothing(caller: Caller, stage: Stage, session_id: str) -> None:
    """As the SDKs' tool runners do."""
    seen: dict[str, None] = {}
    for n in range(20):
        caller.say(session_id, f"{n}")
        with stream(caller, session_id) as opened:
            stage.reply(session_id, say(f"{n}"))
            seen |= dict.fromkeys(listed(caller, session_id))
            seen |= dict.fromkeys(f.data["id"] for f in opened.until("session.status_idle"))
    assert list(seen) == listed(caller, session_id)


def test_our_own_events_are_streamed_on_request_only(caller: Caller, stage: Stage, session_id: str) -> None:
    with stream(caller, session_id) as plain, stream(caller, session_id, include="approvals") as full:
        caller.say(session_id)
        [tool_call] = stage.reply(session_id, call())
        good(caller.tell(session_id, confirmation(tool_call.id, "deny", interrupt=True)))
        plain_frames = plain.until("session.status_idle") + plain.until("session.status_idle")
        full_frames = full.until("session.status_idle") + full.until("session.status_idle")
    assert [f.data["id"] for f in plain_frames] == listed(caller, session_id)
    assert [f.data["id"] for f in full_frames] == listed(caller, session_id, include="approvals")
    assert {f.event for f in full_frames} - {f.event for f in plain_frames} == {"approval.requested", "approval.decided"}


def test_deltas_are_streamed_on_request_in_order_and_without_an_id(
    caller: Caller, stage: Stage, session_id: str, redis_url: str
) -> None:
    stage.message(session_id)
    with stream(caller, session_id, **{"event_deltas[]": "agent.message"}) as opened, stream(caller, session_id) as plain:
        turn = stage.claim(session_id)
        publish(redis_url, session_id, start("sevt_a"), delta("sevt_a", "He"))
        publish(redis_url, session_id, delta("sevt_a", "llo\u2028"))
        frames = [*opened.until("event_delta"), opened.next()]
        stage.reply(session_id, say("Hello"), turn=turn)
        opened.until("session.status_idle")
        seen = plain.until("session.status_idle")
    kinds = [f.event for f in frames]
    assert kinds == ["span.model_request_start", "event_start", "event_delta", "event_delta"]
    assert [f.id for f in frames[1:]] == [None, None, None]
    assert "".join(f.data["delta"]["content"]["text"] for f in frames[2:]) == "Hello\u2028"
    assert not {f.event for f in seen} & {"event_start", "event_delta"}


def test_a_reader_who_joins_in_the_middle_gets_no_partial_preview(
    caller: Caller, stage: Stage, session_id: str, redis_url: str
) -> None:
    caller.say(session_id)
    turn = stage.claim(session_id)
    publish(redis_url, session_id, start("sevt_a"))
    with stream(caller, session_id, **{"event_deltas[]": "agent.message"}) as opened:
        publish(redis_url, session_id, delta("sevt_a", "lo"))
        stage.reply(session_id, say("Hello"), turn=turn)
        assert "event_delta" not in {f.event for f in opened.until("session.status_idle")}


def test_a_reader_who_joins_in_the_middle_gets_the_text_so_far_once(
    caller: Caller, stage: Stage, session_id: str, redis_url: str
) -> None:
    deltas = {"event_deltas[]": "agent.message"}
    stage.message(session_id)
    with stream(caller, session_id, **deltas) as early:
        turn = stage.claim(session_id)
        publish(redis_url, session_id, start("sevt_a"), delta("sevt_a", "He"))
        early.until("event_delta")
        with stream(caller, session_id, **deltas) as late:
            publish(redis_url, session_id, delta("sevt_a", "l"))
            publish_so_far(redis_url, session_id, "sevt_a", "l", "Hell")
            publish_so_far(redis_url, session_id, "sevt_a", "o", "Hello")
            begun = [late.next(), late.next(), late.next()]
            stage.reply(session_id, say("Hello"), turn=turn)
            streams = [[*begun, *late.until("session.status_idle")], early.until("session.status_idle")]
    assert [frame.event for frame in begun] == ["event_start", "event_delta", "event_delta"]
    texts = [[f.data["delta"]["content"]["text"] for f in frames if f.event == "event_delta"] for frames in streams]
    assert texts == [["Hell", "o"], ["l", "l", "o"]]


def test_malformed_messages_in_redis_are_ignored(caller: Caller, session_id: str, redis_url: str) -> None:
    with stream(caller, session_id, **{"event_deltas[]": "agent.message"}) as opened:
        with redis.Redis.from_url(redis_url) as client:
            for note in (
                b"\xff",
                b"{",
                b"[]",
                b'"x"',
                b'{"frames": 5}',
                b'{"frames": [5]}',
                b'{"so_far": [{"type": "event_delta", "event_id": "x"}]}',
                b'{"seq": "x"}',
                b'{"frames": [{}]}',
            ):
                client.publish(f"assent:session:{session_id}", note)
        caller.say(session_id)
        assert opened.next().event == "user.message"


def test_a_terminated_session_s_stream_ends_with_that_event(caller: Caller, stage: Stage, session_id: str) -> None:
    stage.message(session_id)
    stage.reply(session_id, say("Done."))
    with stream(caller, session_id) as opened:
        good(caller.post(f"/v1/sessions/{session_id}/archive"))
        assert [f.event for f in opened.rest()] == ["session.status_terminated"]
    with stream(caller, session_id) as opened:
        assert [f.event for f in opened.rest()] == ["session.status_terminated"]
    everything = listed(caller, session_id)
    with stream(caller, session_id, last=2) as opened:
        assert [f.data["id"] for f in opened.rest()] == everything[2:]
    with stream(caller, session_id, last=len(everything)) as opened:
        assert opened.rest() == []


def test_a_deleted_session_s_stream_ends_with_that_event(caller: Caller, session_id: str) -> None:
    with stream(caller, session_id) as opened:
        good(caller.delete(f"/v1/sessions/{session_id}"))
        [frame] = opened.rest()
        assert frame.event == "session.deleted"
        assert frame.data["processed_at"]


def test_a_revoked_key_s_stream_ends(caller: Caller, api: str, stage: Stage, session_id: str) -> None:
    with transaction(stage.workspace_id) as db:
        row, secret = ApiKey.create(db, NewKey("k"))
    with Caller(api, secret) as other, stream(other, session_id) as opened:
        with transaction(stage.workspace_id) as db:
            ApiKey.revoke(db, row.id, by=stage.principal)
        assert opened.rest() == []


def test_many_readers_of_one_session_see_the_same(caller: Caller, stage: Stage, session_id: str) -> None:
    with ExitStack() as stack:
        readers = [stack.enter_context(stream(caller, session_id)) for _ in range(20)]
        caller.say(session_id)
        stage.reply(session_id, say("Done."))
        expected = listed(caller, session_id)
        for reader in readers:
            assert ids(reader, expected[-1]) == expected


@pytest.fixture(scope="module")
def quiet_api(database_urls: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API server without Redis that polls and comments often."""
    env = {"REDIS_URL": "redis://127.0.0.1:1/0", "ASSENT_STREAM_POLL_SECONDS": "0.1", "ASSENT_STREAM_COMMENT_SECONDS": "0.2"}
    with served(tmp_path_factory.mktemp("quiet") / "log", **env) as url:
        yield url


def test_without_redis_everything_still_arrives(quiet_api: str, stage: Stage) -> None:
    with Caller(quiet_api, key(stage)) as caller:
        session_id = caller.session()["id"]
        with stream(caller, session_id) as opened:
            for n in range(3):
                before = time.monotonic()
                good(caller.tell(session_id, message(f"{n}")))
                assert time.monotonic() - before < 1, "a POST answers within a second"
                stage.reply(session_id, say("Done."))
                opened.until("session.status_idle")


def test_a_quiet_stream_is_kept_alive_by_comments(quiet_api: str, stage: Stage) -> None:
    with Caller(quiet_api, key(stage)) as caller, stream(caller, caller.session()["id"]) as opened:
        wait_for("four comments", lambda: len(opened.comments) >= 4)
