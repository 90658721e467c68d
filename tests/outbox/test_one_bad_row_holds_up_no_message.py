"""A delivery, a notification or a change that no worker can claim holds up no other, and ends after a while."""

from outbox.conftest import MakeEndpoint, deliveries
from outbox.notified import changes, channel, fan_out, notifications
from outbox.receiver import Receiver
from own_database import Clock, DatabaseUrls
from people import member
from rows.refusing import refusing
from rows.stage import Stage
from rows.tasks import work
from rows.voting import ask

from models.database.transactions import transaction
from models.operate import readiness
from models.operate.failing import MOST_FAILURES
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint
from workers import deliver, notifying


def test_deliveries_that_cannot_be_claimed_end_and_those_behind_them_are_sent_once(
    stage: Stage, clock: Clock, receiver: Receiver, new_endpoint: MakeEndpoint, database_urls: DatabaseUrls
) -> None:
    endpoint = new_endpoint(receiver.url)
    with transaction(stage.workspace_id) as db:
        row = db.get_one(Endpoint, endpoint.id)
        bad, good = [Delivery.test(db, row, "session.created").id for _ in range(2)]
    with refusing(database_urls.admin, "delivery", f"NEW.status = 'running' AND NEW.id = '{bad}'"):
        for _ in range(MOST_FAILURES):
            work(deliver.send, bad, stage.workspace_id)
            work(deliver.send, good, stage.workspace_id)
            clock.advance(400)
    by_id = {delivery.id: delivery for delivery in deliveries(stage)}
    assert (by_id[good].status, len(receiver.requests)) == ("done", 1)
    assert (by_id[bad].status, len(by_id[bad].attempts)) == ("failed", 1)
    assert "could not be begun" in by_id[bad].attempts[0]["error"]


def test_a_notification_that_cannot_be_claimed_ends_and_the_next_is_sent(
    stage: Stage, clock: Clock, ops: Receiver, database_urls: DatabaseUrls
) -> None:
    channel(stage, member(stage))
    for _ in range(2):
        ask(stage, stage.session())
    fan_out(stage)
    bad, good = notifications(stage)
    with refusing(database_urls.admin, "notification", f"NEW.status = 'running' AND NEW.id = '{bad.id}'"):
        for _ in range(MOST_FAILURES):
            work(notifying.notify, bad.id, stage.workspace_id)
            assert next(row.status for row in notifications(stage) if row.id == good.id) == "done"
            clock.advance(100)
    failed = next(row for row in notifications(stage) if row.id == bad.id)
    assert (failed.status, len(ops.requests)) == ("failed", 1)
    assert "could not be begun" in failed.error
    assert readiness.failing(stage.workspace_id)[0].startswith("deliver.notify failed at 1 row(s)")


def test_a_change_that_cannot_be_told_is_left_out_after_a_while(
    stage: Stage, clock: Clock, ops: Receiver, database_urls: DatabaseUrls
) -> None:
    channel(stage, member(stage))
    ask(stage, stage.session())
    with refusing(database_urls.admin, "notification"):
        for _ in range(MOST_FAILURES):
            assert len(changes(stage)) == 1
            fan_out(stage)
            clock.advance(100)
    assert changes(stage) == []
