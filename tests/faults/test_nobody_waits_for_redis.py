"""No request and no task waits for Redis: a thread publishes, gives up after a failure, and tries again after a pause."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import warm
from crashes.hints import forget, use_redis
from crashes.processes import wait_for
from faults.own_redis import OwnRedis, own_redis
from own_database import Clock
from rows.stage import Stage

from models.database.transactions import Hint
from models.operate import queued
from models.session.turn.row import Turn
from workers import enqueue
from workers.celery import app
from workers.sweeps import dispatching

HINT = Hint("turn.run", ("turn_1", "sesn_1", "wrkspc_1"))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnRedis]:
    with own_redis(tmp_path) as server:
        use_redis(monkeypatch, server.url)
        yield server
    monkeypatch.undo()
    forget()


def notes(client: redis.client.PubSub) -> list[dict[str, object]]:
    """The notes up to one with `last`, in order."""
    received: list[dict[str, object]] = []
    while not received or "last" not in received[-1]:
        message = client.get_message(ignore_subscribe_messages=True, timeout=5)
        assert message is not None, f"no note after {received}"
        received.append(json.loads(message["data"]))
    return received


def paused() -> bool:
    return enqueue.publisher().paused_until > 0


def resume() -> None:
    """End the pause."""
    enqueue.publisher().paused_until = 0.0


def test_a_message_that_cannot_be_sent_stops_none_after_it(server: OwnRedis) -> None:
    with app.connection_for_read(server.url) as connection, connection.SimpleQueue("turns", no_ack=True) as turns:
        assert enqueue.publish([Hint("turn.run", (object(),))], {})  # type: ignore[arg-type]
        assert enqueue.publish([HINT], {})
        assert turns.get(timeout=5).payload[0] == list(HINT.args)


@pytest.mark.parametrize("queue", [None, "tools.billing"])
def test_celery_gets_hints_with_ids_only_in_their_order(server: OwnRedis, queue: str | None) -> None:
    with app.connection_for_read(server.url) as connection, connection.SimpleQueue(queue or "tools", no_ack=True) as tools:
        for number in range(4):
            assert enqueue.publish([Hint("tool.run", (f"toolu_{number}",), queue)], {})
        messages = [tools.get(timeout=5) for _ in range(4)]
    assert [message.payload[0] for message in messages] == [[f"toolu_{number}"] for number in range(4)]
    assert {message.headers["task"] for message in messages} == {"tool.run"}


def test_readers_get_notes_in_their_order(server: OwnRedis) -> None:
    with redis.Redis.from_url(server.url) as client, client.pubsub() as reader:
        reader.subscribe(enqueue.channel("sesn_1"))
        reader.get_message(timeout=5)
        for seq in range(300):
            assert enqueue.publish([], {"sesn_1": {"seq": seq}})
        assert enqueue.publish([], {"sesn_1": {"last": True}})
        assert [note.get("seq") for note in notes(reader)] == [*range(300), None]


def test_a_redis_that_refuses_is_left_alone_and_tried_again_after_the_pause(server: OwnRedis) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", 1)
        assert enqueue.publish([HINT], {})
        wait_for("the publisher pauses", paused)
        assert not enqueue.publish([HINT], {})
        client.config_set("maxmemory", 0)
        resume()
        assert enqueue.publish([HINT], {})
        wait_for("the hint is there", lambda: client.llen("turns") == 1)


def test_nobody_waits_for_a_redis_that_does_not_respond(server: OwnRedis) -> None:
    """A hundred hints are accepted while Redis stands still. The connection recovers when Redis does."""
    assert enqueue.publish([HINT], {})
    with redis.Redis.from_url(server.url) as client:
        wait_for("the hint is there", lambda: client.llen("turns") == 1)
        for process in server.process.family:
            process.suspend()
        try:
            assert all(enqueue.publish([HINT], {}) for _ in range(100))
            wait_for("the publisher pauses", paused)
        finally:
            for process in server.process.family:
                process.resume()
        client.delete("turns")
        resume()
        assert enqueue.publish([HINT], {})
        wait_for("the hint is there", lambda: client.llen("turns") >= 1)


def test_a_connection_that_redis_closed_costs_one_pause(server: OwnRedis) -> None:
    with redis.Redis.from_url(server.url) as client:
        for number in (1, 2):
            assert enqueue.publish([HINT], {})
            wait_for("the hint is there", lambda number=number: client.llen("turns") == number)
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            wait_for("the publisher takes hints again", lambda: resume() or enqueue.publish([], {"sesn_1": {"seq": 1}}))


FORKS = """
import os, redis
from models.database.transactions import Hint
from models.settings import settings
from workers import enqueue

client = redis.Redis.from_url(settings().redis_url)
for number in (1, 2):
    child = os.fork() if number == 2 else 0
    if not child:
        assert enqueue.publish([Hint("turn.run", ("turn_1",))], {})
        while client.llen("turns") < number:
            pass
        if number == 2:
            os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_publishes_too(server: OwnRedis) -> None:
    """The parent already had a publisher, whose thread and connections the child lacks."""
    done = warm.run("-c", FORKS)
    assert (done.stdout, done.stderr) == ("7\n", "")


def test_a_row_whose_hint_cannot_be_sent_is_not_stamped_as_hinted(server: OwnRedis, stage: Stage, clock: Clock) -> None:
    """The first sweep that reaches Redis again sends the hint."""
    session_id = stage.session()
    stage.message(session_id)
    clock.advance(60)
    assert enqueue.backlog("turns") is not None
    server.kill()
    assert enqueue.backlog("turns") is None
    dispatching.dispatch()
    assert [hint.args[1] for hint in queued.hints(Turn)] == [session_id]
