"""An event is a delivery for each enabled endpoint that names its type, inserted in the transaction that caused the event."""

from collections import Counter

import pytest
from outbox.conftest import MakeEndpoint, deliveries
from rows.stage import Stage, call
from rows.threads import Child

from models.database.transactions import transaction
from models.flow.begin import sessions
from models.outbox.endpoint import Endpoint
from models.outbox.webhook_events import THREAD_EVENTS
from models.session.event.of_session import SessionUpdated
from models.session.locked import Locked


def types(stage: Stage) -> Counter[str]:
    return Counter(delivery.event_type for delivery in deliveries(stage))


def test_a_run_that_asks_reports_each_step(stage: Stage, new_endpoint: MakeEndpoint) -> None:
    new_endpoint()
    session = stage.session()
    stage.message(session)
    [waiting] = stage.reply(session, call())
    assert types(stage) == Counter(
        (
            *("agent.created", "session.created", "session.running", "session.status_run_started"),
            *("approval.requested", "session.idled", "session.status_idled", "session.requires_action"),
        )
    )
    stage.confirm(session, waiting.id, "deny", interrupt=True)
    assert types(stage)["approval.decided"] == 1
    assert types(stage)["session.requires_action"] == 1, "the end of the run needs nobody"
    [decided] = [delivery for delivery in deliveries(stage) if delivery.event_type == "approval.decided"]
    assert decided.subject_id.startswith("appr_")
    assert decided.session_id == session


def test_an_event_outside_of_a_run_is_reported(stage: Stage, new_endpoint: MakeEndpoint) -> None:
    session = stage.session()
    new_endpoint()
    stage.locked(session, sessions.archive)
    assert types(stage) == Counter(["session.status_terminated", "session.archived"])


def test_a_thread_reports_its_beginning_its_rests_and_its_end(stage: Stage, new_endpoint: MakeEndpoint) -> None:
    new_endpoint("https://example.com/threads", *THREAD_EVENTS)
    session = stage.session()
    stage.message(session)
    child = Child(stage, session)
    child.propose()
    stage.locked(session, lambda locked: sessions.archive_thread(locked.on(locked.threads[1])))
    assert sorted((each.event_type, each.subject_id, each.session_id) for each in deliveries(stage)) == [
        ("session.thread_created", child.id, session),
        ("session.thread_idled", child.id, session),
        ("session.thread_idled", child.id, session),
        ("session.thread_terminated", child.id, session),
    ]


def test_an_endpoint_gets_the_types_that_it_names_while_it_is_enabled(stage: Stage, new_endpoint: MakeEndpoint) -> None:
    named = new_endpoint("https://example.com/one", "session.created")
    other = new_endpoint("https://example.com/two", "session.created", "agent.created")
    stage.session()
    assert sorted((d.endpoint_id, d.event_type) for d in deliveries(stage)) == sorted(
        [(named.id, "session.created"), (other.id, "session.created"), (other.id, "agent.created")]
    )
    both = [d.event_id for d in deliveries(stage) if d.event_type == "session.created"]
    assert both[0] == both[1], "all endpoints get the same id of an event"
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, other.id, lock=True).change(db, stage.principal, {"state": "disabled"})
    stage.session()
    assert Counter(d.endpoint_id for d in deliveries(stage)) == {named.id: 2, other.id: 2}


def test_without_an_endpoint_nothing_is_queued(stage: Stage) -> None:
    stage.session()
    assert deliveries(stage) == []


def test_a_transaction_that_fails_reports_nothing(stage: Stage, new_endpoint: MakeEndpoint) -> None:
    session = stage.session()
    new_endpoint()

    def fail_after_emitting(locked: Locked) -> None:
        locked.emit(SessionUpdated(type="session.updated"))
        assert locked.db.value("SELECT COUNT(*) FROM delivery") == 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stage.locked(session, fail_after_emitting)
    assert deliveries(stage) == []


def test_another_workspace_gets_no_event(stage: Stage, new_endpoint: MakeEndpoint) -> None:
    new_endpoint()
    other = Stage()
    other.session()
    assert deliveries(stage) == deliveries(other) == []
