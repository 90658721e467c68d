"""The outcome of a task of the process `deliver` names what was sent, and what failed. A failed message is a failed task."""

import logging

import pytest
from outbox.conftest import MakeEndpoint, answers, deliveries
from outbox.notified import changes, channel, notifications
from outbox.receiver import Receiver
from own_database import Clock, DatabaseUrls
from people import member
from rows.refusing import refusing
from rows.stage import Stage
from rows.voting import ask

from workers import deliver, notifying


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [
        (204, "SUCCESS", "sent 2: session.created"),
        (503, "RETRY", "tries again 2: 503"),
        (410, "FAILURE", "failed 1: 410"),
    ],
)
def test_a_delivery_s_task_names_its_events_or_the_endpoint_s_status(
    stage: Stage, receiver: Receiver, new_endpoint: MakeEndpoint, status: int, state: str, words: str
) -> None:
    answers(stage, new_endpoint(receiver.url, "session.created"))
    for _ in range(2):
        stage.session()
    receiver.status = status
    [first, *_] = deliveries(stage)
    result = deliver.send.apply((first.id, stage.workspace_id))
    assert state == result.state
    assert words in str(result.result)
    assert deliver.send.apply((first.id, stage.workspace_id)).result == "nothing to do"


def test_the_tasks_of_a_notification_name_how_many_and_the_channel_s_kind(stage: Stage, ops: Receiver) -> None:
    channel(stage, member(stage))
    ask(stage, stage.session())
    [change] = changes(stage)
    assert notifying.fan_out(change.id, stage.workspace_id) == "notifications: 1"
    assert notifying.fan_out(change.id, stage.workspace_id) == "nothing to do"
    [row] = notifications(stage)
    assert notifying.notify(row.id, stage.workspace_id) == "sent 1: operator"
    assert notifying.notify(row.id, stage.workspace_id) == "nothing to do"


def test_a_notification_that_fails_is_tried_again_and_its_address_is_not_in_the_outcome(
    stage: Stage, ops: Receiver, clock: Clock
) -> None:
    channel(stage, member(stage))
    ask(stage, stage.session())
    [change] = changes(stage)
    notifying.fan_out(change.id, stage.workspace_id)
    [row] = notifications(stage)
    ops.status = 500
    result = notifying.notify.apply((row.id, stage.workspace_id))
    assert result.state == "RETRY"
    assert "tries again 1: operator" in str(result.result)
    assert ops.url not in f"{result.result!r}{result.traceback}"


def test_a_claim_that_raises_is_a_failed_task_and_the_log_has_no_traceback(
    stage: Stage, ops: Receiver, database_urls: DatabaseUrls, caplog: pytest.LogCaptureFixture
) -> None:
    channel(stage, member(stage))
    ask(stage, stage.session())
    [change] = changes(stage)
    with refusing(database_urls.admin, "notification"), caplog.at_level(logging.INFO):
        result = notifying.fan_out.apply((change.id, stage.workspace_id))
    assert (result.state, str(result.result)) == ("FAILURE", "left for later: CheckViolation")
    notifying.fan_out(change.id, stage.workspace_id)
    [row] = notifications(stage)
    with refusing(database_urls.admin, "notification", "NEW.status = 'running'"), caplog.at_level(logging.INFO):
        result = notifying.notify.apply((row.id, stage.workspace_id))
    assert (result.state, str(result.result)) == ("FAILURE", "failed 1: left for later: CheckViolation")
    assert not [record for record in caplog.records if record.exc_info]
