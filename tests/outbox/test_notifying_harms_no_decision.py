"""Nothing about notifying slows, blocks or fails a decision; a slow channel leaves threads for the others."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from crashes.processes import wait_for
from outbox.conftest import MakeEndpoint
from outbox.notified import changes, channel, fan_out, notifications, notify
from outbox.receiver import Receiver
from people import member
from rows.stage import Stage
from rows.tasks import claim_delivery, work
from rows.voting import ask, vote

from models.database.exchange import Connection
from models.database.transactions import transaction
from models.notices import recipients as verbs
from models.outbox.delivery import Delivery
from models.session.approval.row import Approval
from workers import notifying


def test_a_decision_waits_for_no_fan_out_and_no_sending(stage: Stage, ops: Receiver) -> None:
    anna = member(stage)
    channel(stage, anna)
    approval = ask(stage, stage.session())
    [change] = changes(stage)
    with transaction(stage.workspace_id) as db:
        verbs.fan_out(db, change.id)
        db.value("SELECT 1")  # sends what is queued: its locks are held now
        vote(stage, anna, approval)
    [row] = notifications(stage)
    other = ask(stage, stage.session())
    fan_out(stage)
    row = next(one for one in notifications(stage) if one.approval_id == other.id)
    with transaction(stage.workspace_id) as db:
        assert verbs.prepare(db, row.id)
        db.value("SELECT 1")
        vote(stage, anna, other)
    assert stage.get(Approval, other.id).status == "allowed"


def test_a_decision_sends_the_same_statements_however_many_listen(
    stage: Stage, new_endpoint: MakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a decision then grows only with the rows that one statement inserts."""
    round_trips: list[list[str]] = []
    exchange = Connection.exchange

    def counting(self: Connection, statements: Any) -> Any:
        round_trips.append([statement.sql for statement in statements])
        return exchange(self, statements)

    monkeypatch.setattr(Connection, "exchange", counting)

    def of_a_decision() -> list[list[str]]:
        approval = ask(stage, stage.session())
        round_trips.clear()
        stage.decide(approval, result="deny")
        return list(round_trips)

    new_endpoint()
    channel(stage)
    with_one = of_a_decision()
    for _ in range(9):
        new_endpoint()
        channel(stage)
    assert of_a_decision() == with_one
    with transaction(stage.workspace_id) as db:
        assert db.value("SELECT COUNT(*) FROM delivery WHERE event_type = 'approval.decided'") == 1 + 10


def test_a_decision_waits_for_no_worker_that_holds_an_endpoint(stage: Stage, new_endpoint: MakeEndpoint) -> None:
    endpoint = new_endpoint()
    approval = ask(stage, stage.session())
    with transaction(stage.workspace_id) as db:
        [row, *_others] = db.find(Delivery, "WHERE endpoint_id = %(id)s ORDER BY id", id=endpoint.id)
        assert claim_delivery(db, row.id)
        db.value("SELECT 1")  # sends what is queued: the locks are held now
        stage.decide(approval, result="deny")
    assert stage.get(Approval, approval.id).status == "denied"


def test_a_slow_channel_takes_a_part_of_the_threads_and_still_gets_all_messages(
    stage: Stage, ops: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifying, "HOLD_SECONDS", 60)
    channel(stage)
    for _ in range(notifying.AT_ONCE + 2):
        ask(stage, stage.session())
    fan_out(stage)
    rows = notifications(stage)
    ops.may_answer.clear()
    with ThreadPoolExecutor(len(rows)) as threads:
        busy = [threads.submit(work, notifying.notify, row.id, stage.workspace_id) for row in rows[: notifying.AT_ONCE]]
        wait_for("each place is taken", lambda: len(ops.requests) == notifying.AT_ONCE)
        for row in rows[notifying.AT_ONCE :]:
            threads.submit(work, notifying.notify, row.id, stage.workspace_id).result(20)
        assert len(ops.requests) == notifying.AT_ONCE, "the others return at once"
        ops.may_answer.set()
        for future in busy:
            future.result(30)
    assert {row.status for row in notifications(stage)} == {"done"}, "the workers that hold a place go on with the due rows"
    assert len(ops.requests) == len(rows)


@pytest.mark.parametrize(
    ("approval", "may_decide"),
    [(None, True), ({"required_approvals": 2}, False), ({"four_eyes": True}, False), ({"timeout_seconds": 60}, True)],
)
def test_buttons_decide_only_plain_approvals(stage: Stage, approval: dict[str, object] | None, may_decide: bool) -> None:
    for _ in range(2):
        member(stage)
    channel(stage)
    requester = member(stage).person_id if approval and "four_eyes" in approval else None
    ask(stage, stage.session(approval=approval, on_behalf_of=requester))
    fan_out(stage)
    with transaction(stage.workspace_id) as db:
        message = verbs.prepare(db, notifications(stage)[0].id)
        assert message
        assert message.notice.buttons == (("allow", "deny") if may_decide else ())


@pytest.mark.parametrize(
    ("command", "buttons"),
    [("ls -l", ("allow", "deny")), (f"echo {'x' * 500}; rm -rf ~", ("deny",)), ("mysql --password=hunter22hunter22", ("deny",))],
)
def test_a_message_allows_only_a_call_that_it_shows_whole(stage: Stage, command: str, buttons: tuple[str, ...]) -> None:
    channel(stage)
    ask(stage, stage.session(), command=command)
    fan_out(stage)
    with transaction(stage.workspace_id) as db:
        message = verbs.prepare(db, notifications(stage)[0].id)
        assert message
        assert message.notice.buttons == buttons


def test_two_fan_outs_of_one_approval_make_one_notification(stage: Stage, ops: Receiver) -> None:
    for _ in range(3):
        channel(stage)
    approval = ask(stage, stage.session())
    stage.decide(approval, result="deny")
    second = ask(stage, stage.session())
    together = threading.Barrier(2)

    def run(change_id: str) -> None:
        together.wait(10)
        work(notifying.fan_out, change_id, stage.workspace_id)

    pending = [change.id for change in changes(stage) if change.approval_id == second.id]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(run, pending * 2))
    assert len([row for row in notifications(stage) if row.approval_id == second.id]) == 3
    notify(stage)
    assert len(ops.requests) == 3
