"""However many deliveries wait for an endpoint that does not answer, other endpoints keep their pace."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from crashes.processes import wait_for
from outbox.conftest import NewEndpoint, deliveries, endpoint_now
from outbox.receiver import Receiver, receiving
from own_database import Clock
from rows.stage import Stage

from models.database import transactions
from models.database.transactions import Hint, transaction
from models.flow import due, queued
from models.outbox import claims
from models.outbox.claims import AT_ONCE
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint
from workers import deliver, enqueue, sweeps

MANY = 200


@pytest.fixture
def hints() -> Iterator[list[Hint]]:
    """The hints that leave after commits."""
    sent: list[Hint] = []
    transactions.on_commit(lambda box: sent.extend(box.hints))
    yield sent
    transactions.on_commit(enqueue.send)


@pytest.fixture
def living() -> Iterator[Receiver]:
    """An endpoint that answers at once, beside one that does not."""
    with receiving() as receiver:
        yield receiver


def new_deliveries(stage: Stage, endpoint: Endpoint, count: int) -> list[str]:
    """The ids of new deliveries for this endpoint."""
    with transaction(stage.workspace_id) as db:
        return [Delivery.test(db, endpoint, "session.created").id for _ in range(count)]


def fail(stage: Stage, endpoint: Endpoint) -> None:
    """An attempt at a delivery of this endpoint failed."""
    [delivery_id] = new_deliveries(stage, endpoint, 1)
    with transaction(stage.workspace_id) as db:
        claimed = claims.claim(db, delivery_id)
        assert claimed
        claimed.delivery.finish(db, status=500, error="The response was 500.", seconds=1)


def test_the_living_one_is_sent_all_before_the_dead_one_s_first_attempt_ends(
    stage: Stage, receiver: Receiver, living: Receiver, new_endpoint: NewEndpoint
) -> None:
    receiver.may_answer.clear()
    work = new_deliveries(stage, new_endpoint(receiver.url), MANY) + new_deliveries(stage, new_endpoint(living.url), MANY // 4)
    with ThreadPoolExecutor(2 * AT_ONCE) as pool:  # as the process `deliver` has
        sent = [pool.submit(deliver.send, delivery_id, stage.workspace_id) for delivery_id in work]
        wait_for("the living one has all", lambda: len(living.requests) == MANY // 4, 60)
        assert len(receiver.requests) == AT_ONCE, "never more at a time"
        receiver.status = 500
        receiver.may_answer.set()
        for one in sent:
            one.result(60)


def test_the_sweep_comes_to_every_endpoint(stage: Stage, new_endpoint: NewEndpoint, clock: Clock) -> None:
    dead = set(new_deliveries(stage, new_endpoint("https://example.com/dead"), due.BATCH + 100))
    [late] = new_deliveries(stage, new_endpoint("https://example.com/living"), 1)
    clock.advance(3600)
    sent = {hint.args[0] for hint in queued.delivery_hints()}
    assert late in sent
    assert len(sent & dead) == AT_ONCE


def test_a_failing_endpoint_is_sent_one_at_a_time_until_it_answers(stage: Stage, new_endpoint: NewEndpoint, clock: Clock) -> None:
    endpoint = new_endpoint("https://example.com/hook")
    fail(stage, endpoint)
    first, *others = new_deliveries(stage, endpoint, AT_ONCE)
    with transaction(stage.workspace_id) as db:
        assert claims.claim(db, first)
        assert not claims.claim(db, others[0])
    with transaction(stage.workspace_id) as db:
        db.get_one(Delivery, first, lock=True).finish(db, status=200, error=None, seconds=1)
        assert all(claims.claim(db, delivery_id) for delivery_id in others)
    assert endpoint_now(stage, endpoint).failing_since is None


def test_events_for_a_failing_endpoint_fill_no_queue(stage: Stage, new_endpoint: NewEndpoint, hints: list[Hint]) -> None:
    endpoint = new_endpoint("https://example.com/hook", "session.created")
    fail(stage, endpoint)
    hints.clear()
    stage.session()
    waiting = deliveries(stage)[-1]
    assert [hint for hint in hints if hint.task == "deliver.send"] == []
    assert [hint.args for hint in queued.delivery_hints()] == [(waiting.id, stage.workspace_id)], "the next sweep begins"


def test_an_endpoint_that_is_enabled_again_has_a_new_start(stage: Stage, new_endpoint: NewEndpoint) -> None:
    endpoint = new_endpoint("https://example.com/hook")
    fail(stage, endpoint)
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, endpoint.id, lock=True).change(db, stage.principal, {"url": "https://example.com/other"})
    assert endpoint_now(stage, endpoint).failing_since is None


def test_a_worker_goes_on_with_what_is_due_for_its_endpoint(stage: Stage, receiver: Receiver, new_endpoint: NewEndpoint) -> None:
    first, *_others = new_deliveries(stage, new_endpoint(receiver.url), 5)
    deliver.send(first, stage.workspace_id)
    assert [delivery.status for delivery in deliveries(stage)] == ["done"] * 5
    assert len(receiver.requests) == 5


def test_a_worker_turns_to_others_after_a_while(
    stage: Stage, receiver: Receiver, new_endpoint: NewEndpoint, hints: list[Hint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "HOLD_SECONDS", 0)
    first, second, _third = new_deliveries(stage, new_endpoint(receiver.url), 3)
    hints.clear()
    deliver.send(first, stage.workspace_id)
    assert [hint.args for hint in hints] == [(second, stage.workspace_id)]
    assert [delivery.status for delivery in deliveries(stage)] == ["done", "queued", "queued"]


def test_deliveries_of_a_disabled_endpoint_are_cancelled_together(
    stage: Stage, new_endpoint: NewEndpoint, hints: list[Hint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "CANCELLED_AT_ONCE", 3)
    endpoint = new_endpoint("https://example.com/hook")
    rows = new_deliveries(stage, endpoint, 5)
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, endpoint.id, lock=True).change(db, stage.principal, {"state": "disabled"})
    hints.clear()
    deliver.send(rows[0], stage.workspace_id)
    assert [hint.args[0] for hint in hints] == [rows[3]]
    deliver.send(rows[3], stage.workspace_id)
    assert {delivery.status for delivery in deliveries(stage)} == {"cancelled"}


def test_a_dead_worker_is_not_the_endpoint_s_fault(stage: Stage, new_endpoint: NewEndpoint, clock: Clock) -> None:
    endpoint = new_endpoint("https://example.com/hook")
    [delivery_id] = new_deliveries(stage, endpoint, 1)
    with transaction(stage.workspace_id) as db:
        assert claims.claim(db, delivery_id)
    clock.advance(100)
    sweeps.rescue()
    assert deliveries(stage)[0].attempts[0]["error"] == "The worker died."
    assert endpoint_now(stage, endpoint).failing_since is None
