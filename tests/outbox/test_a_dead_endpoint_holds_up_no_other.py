"""However many deliveries wait for an endpoint that does not respond, other endpoints keep their pace."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from crashes.processes import wait_for
from outbox.conftest import MakeEndpoint, answers, deliveries, endpoint_now
from outbox.receiver import Receiver, receiving
from own_database import Clock
from rows.stage import Stage
from rows.tasks import claim_delivery, work

from models.database import clock as database_clock
from models.database.transactions import Hint, transaction
from models.operate import due, queued
from models.outbox import claims
from models.outbox.delivery import Caused, Delivery
from models.outbox.endpoint import AT_ONCE, LONGEST_PAUSE, Endpoint
from models.settings import settings
from workers import deliver
from workers.deliver import SLOW_AT_ONCE
from workers.sweeps import rescuing

MANY = 200


@pytest.fixture
def living() -> Iterator[Receiver]:
    """A server that responds at once, beside `receiver`, which may hang."""
    with receiving() as receiver:
        yield receiver


def new_deliveries(stage: Stage, endpoint: Endpoint, count: int) -> list[str]:
    """The ids of new deliveries for this endpoint."""
    with transaction(stage.workspace_id) as db:
        row = db.get_one(Endpoint, endpoint.id)
        return [Delivery.test(db, row, "session.created").id for _ in range(count)]


def fail(stage: Stage, endpoint: Endpoint) -> None:
    """Record a failed attempt at a delivery for this endpoint."""
    [delivery_id] = new_deliveries(stage, endpoint, 1)
    with transaction(stage.workspace_id) as db:
        claimed = claim_delivery(db, delivery_id)
        assert claimed
        claimed.finish(db, status=500, error="The response was 500.", seconds=1)


def test_an_endpoint_that_answers_gets_all_events_while_another_hangs(
    stage: Stage, receiver: Receiver, living: Receiver, new_endpoint: MakeEndpoint
) -> None:
    receiver.may_answer.clear()
    dead, alive = (answers(stage, new_endpoint(url)) for url in (receiver.url, living.url))
    delivery_ids = new_deliveries(stage, dead, MANY) + new_deliveries(stage, alive, MANY // 4)
    with ThreadPoolExecutor(2 * AT_ONCE) as pool:  # as the process `deliver` has
        futures = [pool.submit(work, deliver.send, delivery_id, stage.workspace_id) for delivery_id in delivery_ids]
        wait_for("the living one has all", lambda: len(living.requests) == MANY // 4, 60)
        wait_for("the dead one has as many as it is sent at a time", lambda: len(receiver.requests) == AT_ONCE, 60)
        receiver.status = 500
        receiver.may_answer.set()
        for future in futures:
            future.result(60)


def test_many_new_endpoints_that_do_not_answer_leave_threads_for_one_that_does(
    stage: Stage, receiver: Receiver, living: Receiver, new_endpoint: MakeEndpoint
) -> None:
    receiver.may_answer.clear()
    dead = [new_deliveries(stage, new_endpoint(receiver.url), 1)[0] for _ in range(SLOW_AT_ONCE + 3)]
    [late] = new_deliveries(stage, answers(stage, new_endpoint(living.url)), 1)
    with ThreadPoolExecutor(SLOW_AT_ONCE + 1) as pool:
        futures = [pool.submit(work, deliver.send, delivery_id, stage.workspace_id) for delivery_id in [*dead, late]]
        wait_for("the living one has its event", lambda: len(living.requests) == 1, 60)
        wait_for("each place is taken", lambda: len(receiver.requests) == SLOW_AT_ONCE, 60)
        wait_for("the others are left to the sweep", lambda: sum(future.done() for future in futures) == 4, 60)
        receiver.may_answer.set()
        for future in futures:
            future.result(60)
    assert len(receiver.requests) == SLOW_AT_ONCE
    assert [delivery.status for delivery in deliveries(stage)].count("queued") == 3
    work(deliver.send, dead[-1], stage.workspace_id)
    assert len(receiver.requests) == SLOW_AT_ONCE + 1, "the places are free again"


def test_a_new_endpoint_is_sent_one_event_and_the_others_as_soon_as_it_answers(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, hints: list[Hint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "HOLD_SECONDS", 0)
    first, *others = new_deliveries(stage, new_endpoint(receiver.url), AT_ONCE + 5)
    with transaction(stage.workspace_id) as db:
        assert claim_delivery(db, first)
        assert not claim_delivery(db, others[0])
        db.roll_back()
    hints.clear()
    work(deliver.send, first, stage.workspace_id)
    assert [hint.args[0] for hint in hints] == others[:AT_ONCE]


def test_an_endpoint_gets_no_more_hints_than_it_is_sent_at_a_time(
    stage: Stage, new_endpoint: MakeEndpoint, hints: list[Hint]
) -> None:
    new_endpoint("https://example.com/hook", "session.created")
    other = new_endpoint("https://example.com/other", "session.archived")
    for kind in ("session.created", "session.created", "session.archived"):
        with transaction(stage.workspace_id) as db:
            Delivery.cause(db, *[Caused(kind, "sesn_1")] * (AT_ONCE + 5))
    hinted = {hint.args[0] for hint in hints}
    assert [row.endpoint_id == other.id for row in deliveries(stage) if row.id in hinted].count(True) == AT_ONCE
    assert len(hinted) == 2 * AT_ONCE, "no hint for a delivery that waits behind others"


def test_a_failing_endpoint_pauses_as_a_whole_until_a_person_sends_something(
    stage: Stage, new_endpoint: MakeEndpoint, clock: Clock
) -> None:
    endpoint = new_endpoint("https://example.com/hook")
    fail(stage, endpoint)
    first, *_others = new_deliveries(stage, endpoint, 20)
    clock.advance(100)
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, endpoint.id, lock=True).fail(database_clock.now(db))
    with transaction(stage.workspace_id) as db:
        assert not claim_delivery(db, first)
    assert queued.hints(Delivery) == [], "for half as long as it has been failing"
    clock.advance(51)
    assert len(queued.hints(Delivery)) == 1, "a failing endpoint is sent one"
    clock.advance(3600)
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, endpoint.id, lock=True).fail(database_clock.now(db))
    clock.advance(LONGEST_PAUSE.total_seconds() - 1)
    assert queued.hints(Delivery) == []
    [test] = new_deliveries(stage, endpoint, 1)
    with transaction(stage.workspace_id) as db:
        assert claim_delivery(db, test)


def test_a_dead_worker_s_attempt_keeps_no_other_back(stage: Stage, new_endpoint: MakeEndpoint, clock: Clock) -> None:
    first, second = new_deliveries(stage, new_endpoint("https://example.com/hook"), 2)
    with transaction(stage.workspace_id) as db:
        assert claim_delivery(db, first)
        assert not claim_delivery(db, second)
    clock.advance(settings().webhook_seconds + 6)
    with transaction(stage.workspace_id) as db:
        assert claim_delivery(db, second)


def test_the_sweep_comes_to_every_endpoint(stage: Stage, new_endpoint: MakeEndpoint, clock: Clock) -> None:
    dead = set(new_deliveries(stage, new_endpoint("https://example.com/dead"), due.BATCH + 100))
    [late] = new_deliveries(stage, new_endpoint("https://example.com/living"), 1)
    clock.advance(3600)
    sent = {hint.args[0] for hint in queued.hints(Delivery)}
    assert late in sent
    assert len(sent & dead) == AT_ONCE


def test_a_failing_endpoint_is_sent_one_at_a_time_until_it_answers(stage: Stage, new_endpoint: MakeEndpoint, clock: Clock) -> None:
    endpoint = new_endpoint("https://example.com/hook")
    fail(stage, endpoint)
    first, *others = new_deliveries(stage, endpoint, AT_ONCE)
    with transaction(stage.workspace_id) as db:
        assert claim_delivery(db, first)
        assert not claim_delivery(db, others[0])
    with transaction(stage.workspace_id) as db:
        db.get_one(Delivery, first, lock=True).finish(db, status=200, error=None, seconds=1)
        assert all(claim_delivery(db, delivery_id) for delivery_id in others)
    assert endpoint_now(stage, endpoint).failing_since is None


def test_events_for_a_failing_endpoint_fill_no_queue(stage: Stage, new_endpoint: MakeEndpoint, hints: list[Hint]) -> None:
    endpoint = new_endpoint("https://example.com/hook", "session.created")
    fail(stage, endpoint)
    hints.clear()
    stage.session()
    waiting = deliveries(stage)[-1]
    assert [hint for hint in hints if hint.task == "deliver.send"] == []
    assert [hint.args for hint in queued.hints(Delivery)] == [(waiting.id, stage.workspace_id)], "the next sweep begins"


def test_an_endpoint_that_is_enabled_again_has_a_new_start(stage: Stage, new_endpoint: MakeEndpoint) -> None:
    endpoint = new_endpoint("https://example.com/hook")
    fail(stage, endpoint)
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, endpoint.id, lock=True).change(db, stage.principal, {"url": "https://example.com/other"})
    assert endpoint_now(stage, endpoint).failing_since is None


def test_a_worker_goes_on_with_what_is_due_for_its_endpoint(stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint) -> None:
    first, *_others = new_deliveries(stage, new_endpoint(receiver.url), 5)
    work(deliver.send, first, stage.workspace_id)
    assert [delivery.status for delivery in deliveries(stage)] == ["done"] * 5
    assert len(receiver.requests) == 5


def test_a_worker_turns_to_others_after_a_while(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, hints: list[Hint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "HOLD_SECONDS", 0)
    first, second, _third = new_deliveries(stage, answers(stage, new_endpoint(receiver.url)), 3)
    hints.clear()
    work(deliver.send, first, stage.workspace_id)
    assert [hint.args for hint in hints] == [(second, stage.workspace_id)]
    assert [delivery.status for delivery in deliveries(stage)] == ["done", "queued", "queued"]


def test_deliveries_of_a_disabled_endpoint_are_cancelled_together(
    stage: Stage, new_endpoint: MakeEndpoint, hints: list[Hint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "CANCELLED_AT_ONCE", 3)
    endpoint = new_endpoint("https://example.com/hook")
    rows = new_deliveries(stage, endpoint, 5)
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, endpoint.id, lock=True).change(db, stage.principal, {"state": "disabled"})
    hints.clear()
    work(deliver.send, rows[0], stage.workspace_id)
    assert [hint.args[0] for hint in hints] == [rows[3]]
    work(deliver.send, rows[3], stage.workspace_id)
    assert {delivery.status for delivery in deliveries(stage)} == {"cancelled"}


def test_a_dead_worker_is_not_the_endpoint_s_fault(stage: Stage, new_endpoint: MakeEndpoint, clock: Clock) -> None:
    endpoint = new_endpoint("https://example.com/hook")
    [delivery_id] = new_deliveries(stage, endpoint, 1)
    with transaction(stage.workspace_id) as db:
        assert claim_delivery(db, delivery_id)
    clock.advance(100)
    rescuing.rescue()
    assert deliveries(stage)[0].attempts[0]["error"] == "The worker died."
    assert endpoint_now(stage, endpoint).failing_since is None
