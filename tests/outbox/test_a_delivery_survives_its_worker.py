"""A worker that is killed, a Redis that is gone and a clock that is wrong lose no delivery."""

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from anthropic import Anthropic
from crashes.hints import forget, use_redis
from crashes.processes import running, wait_for
from outbox.conftest import MakeEndpoint, deliveries, secret_of, send_due
from outbox.receiver import Received, Receiver
from own_database import Clock
from rows.stage import Stage
from rows.tasks import work
from standardwebhooks import WebhookVerificationError

from deploy.folder import free_port
from models.database import transactions
from models.database.transactions import transaction
from models.operate import queued
from models.outbox.delivery import Delivery
from models.settings import settings
from workers import deliver, enqueue
from workers.sweeps import rescuing

SEND = "import sys; from workers import deliver; deliver.send(*sys.argv[1:])"


@pytest.fixture
def redis_is_gone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody listens at REDIS_URL."""
    use_redis(monkeypatch, f"redis://127.0.0.1:{free_port()}/0")
    transactions.on_commit(enqueue.send)
    yield
    monkeypatch.undo()
    forget()


def test_a_worker_that_is_killed_between_sending_and_marking_sends_again_under_the_same_id(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock, tmp_path: Path
) -> None:
    new_endpoint(receiver.url, "session.created")
    stage.session()
    [delivery] = deliveries(stage)
    receiver.may_answer.clear()
    with running([sys.executable, "-c", SEND, delivery.id, stage.workspace_id], {}, tmp_path / "log") as worker:
        wait_for("the request arrives", lambda: receiver.requests, 60)
        worker.kill()
    receiver.may_answer.set()
    assert deliveries(stage)[0].status == "running"
    clock.advance(100)
    rescuing.rescue()
    clock.advance(10)
    send_due(stage)
    first, second = receiver.requests
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    [delivery] = deliveries(stage)
    assert (delivery.status, [each["error"] for each in delivery.attempts]) == ("done", ["The worker died.", None])


@pytest.mark.usefixtures("redis_is_gone")
def test_without_redis_an_event_is_queued_and_delivered_by_the_sweep(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock
) -> None:
    new_endpoint(receiver.url, "session.created")
    stage.session()
    wait_for("the publisher notices", lambda: enqueue.publisher().paused_until > 0)
    [delivery] = deliveries(stage)
    assert delivery.status == "queued"
    clock.advance(settings().rehint_seconds + 1)
    for hint in queued.hints(Delivery):
        work(deliver.send, *hint.args)
    assert deliveries(stage)[0].status == "done"


def verifier(secret: str) -> Callable[[Received], int]:
    """A receiver's `judge` that verifies signatures with the SDK."""
    client = Anthropic(api_key="none", webhook_key=secret)

    def judge(request: Received) -> int:
        try:
            client.beta.webhooks.unwrap(request.body, headers=request.headers)
        except WebhookVerificationError:
            return 400
        return 204

    return judge


@pytest.mark.parametrize("seconds", [-600, 600])
def test_a_receiver_that_refuses_by_its_clock_gets_the_delivery_when_the_clocks_agree(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock, seconds: float
) -> None:
    endpoint = new_endpoint(receiver.url, "session.created")
    receiver.judge = verifier(secret_of(endpoint))
    clock.advance(seconds)
    stage.session()
    send_due(stage)
    [delivery] = deliveries(stage)
    assert (delivery.status, delivery.attempts[0]["status"]) == ("queued", 400)
    clock.advance(max(-seconds, 10))  # past the pause either way
    if seconds > 0:
        clock.reset()
        with transaction(stage.workspace_id) as db:
            db.write("UPDATE delivery SET due_at = assent_now()")
    send_due(stage)
    assert deliveries(stage)[0].status == "done"
    at = [int(request.headers["webhook-timestamp"]) for request in receiver.requests]
    assert abs(at[1] - at[0]) > 500, "each attempt has its own timestamp"


def test_timestamps_are_the_database_s_whatever_the_worker_s_clock_says(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, clock: Clock
) -> None:
    new_endpoint(receiver.url, "session.created")
    clock.advance(86_400)
    stage.session()
    send_due(stage)
    with transaction(stage.workspace_id) as db:
        [(now,)] = db.rows("SELECT assent_now()")
    assert isinstance(now, datetime)
    assert abs(now.timestamp() - int(receiver.requests[0].headers["webhook-timestamp"])) < 60
