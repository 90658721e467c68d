"""Notes to readers are said on a connection of their own, whose answers nobody waits for, and which may end at any time."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from crashes.processes import wait_for
from faults.own_redis import OwnRedis, own_redis

from models.settings import settings
from workers import enqueue


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnRedis]:
    with own_redis(tmp_path) as found:
        monkeypatch.setenv("REDIS_URL", found.url)
        _forget()
        yield found
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    settings.cache_clear()
    enqueue._redis.cache_clear()
    enqueue._news.cache_clear()
    enqueue._paused_until = 0.0


def heard(client: redis.client.PubSub) -> list[bytes]:
    """What came, in order; ends with the note that says so."""
    found: list[bytes] = []
    while not found or b"last" not in found[-1]:
        message = client.get_message(ignore_subscribe_messages=True, timeout=5)
        assert message is not None, f"nothing more came after {found}"
        found.append(message["data"])
    return found


def test_many_notes_come_in_their_order(server: OwnRedis) -> None:
    with redis.Redis.from_url(server.url) as client, client.pubsub() as reader:
        reader.subscribe(enqueue.channel("sesn_1"))
        reader.get_message(timeout=5)
        for seq in range(300):
            assert enqueue.publish([], {"sesn_1": {"seq": seq}})
        assert enqueue.publish([], {"sesn_1": {"last": True}})
        assert len(heard(reader)) == 301


def test_a_connection_that_was_ended_is_made_anew_for_the_next_note(server: OwnRedis) -> None:
    with redis.Redis.from_url(server.url) as client, client.pubsub() as reader:
        reader.subscribe(enqueue.channel("sesn_1"))
        reader.get_message(timeout=5)
        assert enqueue.publish([], {"sesn_1": {"seq": 1}})
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert enqueue.publish([], {"sesn_1": {"last": True}})
        assert len(heard(reader)) == 2


def test_a_redis_that_says_nothing_is_noticed_by_the_next_note(server: OwnRedis) -> None:
    """Nobody waited for its answer, but it must have come by then; and who comes meanwhile does not wait in line."""
    assert enqueue.publish([], {"sesn_1": {"seq": 1}})
    for one in server.process.family:
        one.suspend()
    try:
        wait_for("it is noticed", lambda: not enqueue.publish([], {"sesn_1": {"seq": 2}}))
        assert enqueue._paused_until > 0
        assert not enqueue.publish([], {"sesn_1": {"seq": 3}})
    finally:
        for one in server.process.family:
            one.resume()
    enqueue._paused_until = 0.0
    assert enqueue.publish([], {"sesn_1": {"seq": 4}})


def test_without_redis_a_note_fails_and_nothing_is_tried_for_a_while(server: OwnRedis) -> None:
    assert enqueue.publish([], {"sesn_1": {"seq": 1}})
    server.kill()
    assert not enqueue.publish([], {"sesn_1": {"seq": 2}})
    assert enqueue._paused_until > 0
