"""Hints and notes are said on a connection of their own, whose answers nobody waits for, and which may end at any time."""

import base64
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from crashes.processes import wait_for
from faults.own_redis import OwnRedis, own_redis
from own_database import Clock
from rows.stage import Stage

from models import due
from models.db import Hint
from models.settings import settings
from models.turn import Turn
from workers import enqueue, sweeps
from workers.celery import app

OWN = {"id", "root_id", "correlation_id", "delivery_tag", "reply_to"}
"""What is each message's own."""


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
    enqueue._publisher.cache_clear()
    enqueue._paused_until = 0.0


def heard(client: redis.client.PubSub) -> list[bytes]:
    """What came, in order; ends with the note that says so."""
    found: list[bytes] = []
    while not found or b"last" not in found[-1]:
        message = client.get_message(ignore_subscribe_messages=True, timeout=5)
        assert message is not None, f"nothing more came after {found}"
        found.append(message["data"])
    return found


def pushed(client: redis.Redis, queue: str) -> dict[str, Any]:
    """The message in a queue, without what is its own."""
    wait_for("it is there", lambda: client.llen(queue) == 1)
    message: dict[str, Any] = json.loads(client.rpop(queue))  # type: ignore[arg-type]
    for part in ("headers", "properties"):
        message[part] = {name: value for name, value in message[part].items() if name not in OWN}
    return message | {"body": json.loads(base64.b64decode(message["body"]))}


@pytest.mark.parametrize("queue", [None, "tools.billing"])
def test_a_hint_is_the_message_that_celery_would_send(server: OwnRedis, queue: str | None) -> None:
    args = ("toolu_1", "sesn_1", "wrkspc_1")
    where = {"queue": queue} if queue else {}
    with redis.Redis.from_url(server.url) as client, app.connection_for_write(server.url) as connection:
        app.send_task("tool.run", args, connection=connection, ignore_result=True, **where)
        wanted = pushed(client, queue or "tools")
        assert enqueue.publish([Hint("tool.run", args, queue)], {})
        assert pushed(client, queue or "tools") == wanted


def test_hints_are_taken_in_their_order(server: OwnRedis) -> None:
    """Or what waits the longest would wait for all that comes after it. Several may leave at once."""
    ids = [f"turn_{n}" for n in range(4)]
    with app.connection_for_read(server.url) as connection, connection.SimpleQueue("turns", no_ack=True) as queue:
        for pair in (ids[:2], ids[2:]):
            enqueue._publisher()._looked = 0.0  # it looks now and then
            assert enqueue.publish([Hint("turn.run", (row_id,)) for row_id in pair], {})
            wait_for("they are there", lambda pair=pair: queue.qsize() > ids.index(pair[0]))
        assert [queue.get(timeout=5).payload[0] for _ in ids] == [[row_id] for row_id in ids]


def test_a_hint_that_redis_refused_is_noticed_by_the_next(server: OwnRedis) -> None:
    hint = Hint("turn.run", ("turn_1", "sesn_1", "wrkspc_1"))
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", 1)
        assert enqueue.publish([hint], {})
        wait_for("it is noticed", lambda: not enqueue.publish([hint], {}))
        assert enqueue._paused_until > 0


def test_a_redis_that_takes_hints_again_is_told_of_all_that_follows(server: OwnRedis) -> None:
    """What it refused is no answer that is still to come."""
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", 1)
        wait_for("it is noticed", lambda: not enqueue.publish([Hint("turn.run", ("turn_1",))], {}))
        client.config_set("maxmemory", 0)
    enqueue._paused_until = 0.0
    publisher = enqueue._publisher()
    for seq in range(3):
        assert enqueue.publish([], {"sesn_1": {"seq": seq}})
        wait_for("it is answered, and nothing else is owed", lambda: publisher._look() or not publisher._unanswered)


def test_a_redis_that_loads_takes_nothing_and_is_noticed(server: OwnRedis) -> None:
    """It answers all the while: that it loads, which is not that it hung up."""
    hint = Hint("turn.run", ("turn_1", "sesn_1", "wrkspc_1"))
    with redis.Redis.from_url(server.url) as client:
        client.config_set("key-load-delay", 50_000)  # microseconds
        client.config_set("rdbcompression", "no")
        client.mset({f"key:{n}": "x" * 1_000_000 for n in range(40)})  # it looks up from loading every 2 MB
        client.config_rewrite()
        client.bgrewriteaof()
        wait_for("all of it is written", lambda: not client.info("persistence")["aof_rewrite_in_progress"])
        server.kill()
        server.process.start()
        wait_for("it loads", lambda: loads(client))
        wait_for("it is noticed", lambda: not enqueue.publish([hint], {}), seconds=1)
        assert loads(client)


def loads(client: redis.Redis) -> bool:
    """Whether it says so."""
    try:
        client.ping()
    except redis.BusyLoadingError:
        return True
    except redis.ConnectionError:
        return False
    return False


def test_many_notes_come_in_their_order(server: OwnRedis) -> None:
    with redis.Redis.from_url(server.url) as client, client.pubsub() as reader:
        reader.subscribe(enqueue.channel("sesn_1"))
        reader.get_message(timeout=5)
        for seq in range(300):
            assert enqueue.publish([], {"sesn_1": {"seq": seq}})
        assert enqueue.publish([], {"sesn_1": {"last": True}})
        assert len(heard(reader)) == 301


FORKS = """
import os, redis
from models.settings import settings
from workers import enqueue

assert enqueue.publish([], {"sesn_1": {"seq": 1}})
child = os.fork()
if not child:
    said = enqueue.publish([], {"sesn_1": {"seq": 2}})
    with redis.Redis.from_url(settings().redis_url) as client:
        os._exit(len(client.client_list()) if said else 0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_process_that_was_forked_has_a_connection_of_its_own(server: OwnRedis) -> None:
    """Its parent's, its own, and the one that counts them."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_a_connection_that_was_ended_is_made_anew_for_the_next_note(server: OwnRedis) -> None:
    with redis.Redis.from_url(server.url) as client, client.pubsub() as reader:
        reader.subscribe(enqueue.channel("sesn_1"))
        reader.get_message(timeout=5)
        assert enqueue.publish([], {"sesn_1": {"seq": 1}})
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        enqueue._publisher()._looked = 0.0  # it looks now and then
        assert enqueue.publish([], {"sesn_1": {"last": True}})
        assert len(heard(reader)) == 2


def test_a_redis_that_says_nothing_is_noticed_by_the_next_note(server: OwnRedis) -> None:
    """Nobody waited for its answer, but it must have come by then; and who comes meanwhile does not wait in line."""
    assert enqueue.publish([], {"sesn_1": {"seq": 1}})
    for one in server.process.family:
        one.suspend()
    try:
        wait_for("it is noticed", lambda: not enqueue.publish([], {"sesn_1": {"seq": 2}}))
        paused_until = enqueue._paused_until
        assert paused_until > 0
        assert not enqueue.publish([], {"sesn_1": {"seq": 3}})
        assert enqueue._paused_until == paused_until, "what is not tried puts off no other"
    finally:
        for one in server.process.family:
            one.resume()
    enqueue._paused_until = enqueue._publisher()._looked = 0.0
    assert enqueue.publish([], {"sesn_1": {"seq": 4}})


def test_who_waited_in_line_for_a_redis_that_says_nothing_does_not_try_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as other:
        silent.settimeout(5)
        monkeypatch.setenv("REDIS_URL", f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        _forget()
        first = other.submit(enqueue.publish, [], {"sesn_1": {"seq": 1}})
        connection, _ = silent.accept()
        with connection:
            assert not enqueue.publish([], {"sesn_1": {"seq": 2}})
        assert not first.result()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
    monkeypatch.undo()
    _forget()


def test_an_answer_to_nothing_ends_the_connection(server: OwnRedis) -> None:
    """Whatever comes after it would be taken for something else's."""
    assert enqueue.publish([], {"sesn_1": {"seq": 1}})
    enqueue._publisher()._connection.send_command("PING")
    wait_for("it is noticed", lambda: not enqueue.publish([], {"sesn_1": {"seq": 2}}))


def test_without_redis_a_note_fails_and_nothing_is_tried_for_a_while(server: OwnRedis) -> None:
    assert enqueue.publish([], {"sesn_1": {"seq": 1}})
    server.kill()
    wait_for("it is noticed", lambda: not enqueue.publish([], {"sesn_1": {"seq": 2}}))
    assert enqueue._paused_until > 0


def test_what_cannot_be_told_is_not_marked_as_told(server: OwnRedis, stage: Stage, clock: Clock) -> None:
    """The first sweep that finds a Redis again tells of it."""
    session_id = stage.session()
    stage.message(session_id)
    clock.advance(60)
    assert enqueue.backlog("turns") is not None
    server.kill()
    assert enqueue.backlog("turns") is None
    sweeps.dispatch()
    assert [hint.args[1] for hint in due.hints(Turn)] == [session_id]
