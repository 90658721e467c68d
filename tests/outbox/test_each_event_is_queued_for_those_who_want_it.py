"""An event is a delivery for each enabled endpoint that names its type, inserted in the transaction that caused the event."""

from collections import Counter
from collections.abc import Iterator

import pytest
from outbox.conftest import NewEndpoint, deliveries
from rows.stage import Stage, call

from models import flow
from models.database import transactions
from models.database.rows import Db
from models.database.transactions import Hint, transaction
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint
from models.pure.webhook_events import SDK_EVENTS
from models.session.session import Session
from workers import enqueue


@pytest.fixture
def hints() -> Iterator[list[Hint]]:
    """The hints that leave after commits."""
    sent: list[Hint] = []
    transactions.on_commit(lambda box: sent.extend(box.hints))
    yield sent
    transactions.on_commit(enqueue.send)


def types(stage: Stage) -> Counter[str]:
    return Counter(delivery.event_type for delivery in deliveries(stage))


def test_a_run_that_asks_reports_each_step(stage: Stage, new_endpoint: NewEndpoint) -> None:
    new_endpoint()
    session = stage.session()
    stage.message(session)
    [asked] = stage.reply(session, call())
    assert types(stage) == Counter(
        (
            *("agent.created", "session.created", "session.running", "session.status_run_started"),
            *("approval.requested", "session.idled", "session.status_idled", "session.requires_action"),
        )
    )
    stage.confirm(session, asked.id, "deny", interrupt=True)
    assert types(stage)["approval.decided"] == 1
    assert types(stage)["session.requires_action"] == 1, "the end of the run needs nobody"
    [decided] = [delivery for delivery in deliveries(stage) if delivery.event_type == "approval.decided"]
    assert decided.subject_id.startswith("appr_")
    assert decided.session_id == session


def test_what_happens_outside_of_runs_is_reported(stage: Stage, new_endpoint: NewEndpoint) -> None:
    session = stage.session()
    new_endpoint()
    stage.locked(session, lambda db, row: flow.archive(db, row, stage.principal))
    assert types(stage) == Counter(["session.status_terminated", "session.archived"])


def test_an_endpoint_gets_what_it_names_while_it_is_enabled(stage: Stage, new_endpoint: NewEndpoint) -> None:
    named = new_endpoint("https://example.com/one", "session.created")
    other = new_endpoint("https://example.com/two", "session.created", "agent.created")
    stage.session()
    assert sorted((d.endpoint_id, d.event_type) for d in deliveries(stage)) == sorted(
        [(named.id, "session.created"), (other.id, "session.created"), (other.id, "agent.created")]
    )
    both = [d.event_id for d in deliveries(stage) if d.event_type == "session.created"]
    assert both[0] == both[1], "one event has one id, whoever is told of it"
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, other.id, lock=True).change(db, stage.principal, {"state": "disabled"})
    stage.session()
    assert Counter(d.endpoint_id for d in deliveries(stage)) == {named.id: 2, other.id: 2}


def test_without_an_endpoint_nothing_is_queued_and_nobody_is_hinted(stage: Stage, hints: list[Hint]) -> None:
    Stage()
    stage.session()
    assert deliveries(stage) == []
    assert not [hint for hint in hints if hint.task == "deliver.send"]


def test_hints_leave_after_the_commit(stage: Stage, new_endpoint: NewEndpoint, hints: list[Hint]) -> None:
    new_endpoint("https://example.com/hook", "session.created")
    stage.session()
    [delivery] = deliveries(stage)
    assert [hint.args for hint in hints if hint.task == "deliver.send"] == [(delivery.id, stage.workspace_id)]


def test_a_transaction_that_fails_reports_nothing(stage: Stage, new_endpoint: NewEndpoint) -> None:
    session = stage.session()
    new_endpoint()

    def fail_after_emitting(db: Db, row: Session) -> None:
        row.emit(db, "session.updated", {})
        assert db.value("SELECT COUNT(*) FROM delivery") == 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stage.locked(session, fail_after_emitting)
    assert deliveries(stage) == []


def test_another_workspace_is_told_nothing(stage: Stage, new_endpoint: NewEndpoint) -> None:
    new_endpoint()
    other = Stage()
    other.session()
    assert deliveries(stage) == deliveries(other) == []


def test_ids_sort_by_time_and_are_like_all_others(stage: Stage, new_endpoint: NewEndpoint) -> None:
    new_endpoint("https://example.com/hook", *SDK_EVENTS)
    stage.session()
    found: list[Delivery] = deliveries(stage)
    assert [d.event_type for d in found] == ["agent.created", "session.created"]
    assert all(len(d.id) == len("whdl_") + 26 and d.id[5:15] == d.event_id[5:15] for d in found)
