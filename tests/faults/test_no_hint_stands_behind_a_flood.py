"""However many hints are due at once, those of turns and calls go first, and no sweep makes a queue long."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from crashes.hints import forget, use_redis
from crashes.processes import wait_for
from own_database import Clock
from rows.stage import Stage

from models.database.transactions import Hint
from models.session.hints import AT_ONCE
from models.settings import settings
from workers import enqueue
from workers.celery import app
from workers.sweeps import dispatching, scheduler

TURN = Hint("turn.run", ("turn_1", "sesn_1", "wrkspc_1"))
MAIL = [Hint("deliver.notify", (f"ntfn_{n}", "wrkspc_1")) for n in range(800)]


@pytest.fixture
def client(clean_redis: str, monkeypatch: pytest.MonkeyPatch) -> Iterator["redis.Redis"]:
    """A Redis to which this process publishes."""
    use_redis(monkeypatch, clean_redis)
    with redis.Redis.from_url(clean_redis) as client:
        yield client
    monkeypatch.undo()
    forget()


def test_a_turn_s_hint_goes_before_a_flood_of_mail(client: "redis.Redis") -> None:
    assert enqueue.publish(MAIL, {})
    assert enqueue.publish([TURN], {})
    wait_for("the turn's hint is there", lambda: client.llen("turns"))
    assert client.llen("deliver") < len(MAIL) / 2
    wait_for("the mail follows", lambda: client.llen("deliver") == len(MAIL))


def test_more_mail_than_waits_at_most_leaves_room_for_turns(client: "redis.Redis", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueue, "_MOST_WAITING", 10)
    assert not enqueue.publish(MAIL, {})
    assert enqueue.publish([TURN], {})
    wait_for("the turn's hint is there", lambda: client.llen("turns"))
    assert client.llen("deliver") < len(MAIL) / 2


def test_one_sweep_hints_all_that_workers_take_and_no_more_than_a_queue_holds(
    client: "redis.Redis", stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "LONG_QUEUE", 5)
    for each in (stage, Stage()):
        for _ in range(AT_ONCE):
            each.message(each.session())
    wait_for("all hints are there", lambda: client.llen("turns") == 2 * AT_ONCE)
    client.flushdb()
    clock.advance(6)
    taken = set()
    with ThreadPoolExecutor(1) as pool, app.connection_for_read(settings().redis_url) as connection:
        sweep = pool.submit(dispatching.dispatch)
        with connection.SimpleQueue("turns", no_ack=True) as turns:
            for _ in range(2 * AT_ONCE):
                assert client.llen("turns") <= dispatching.LONG_QUEUE
                taken.add(turns.get(timeout=4).payload[0][0])
        sweep.result(10)
    assert len(taken) == 2 * AT_ONCE


def test_a_worker_of_sweeps_that_was_away_finds_few_of_them(client: "redis.Redis") -> None:
    beat = scheduler.Scheduler(app, lazy=True)
    beat.setup_schedule()
    [rescue] = [entry for entry in beat.schedule.values() if entry.task == "sweep.rescue"]
    with app.connection_for_write(settings().redis_url) as connection:
        producer = app.amqp.Producer(connection, auto_declare=False)
        for _ in range(scheduler.MOST_SWEEPS + 50):
            beat.apply_entry(rescue, producer)
    assert client.llen("sweeps") == scheduler.MOST_SWEEPS
