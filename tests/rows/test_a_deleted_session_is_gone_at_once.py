"""A deleted session or endpoint is gone at once for every reader. A sweep removes its rows in batches, however many there are."""

import psycopg
import pytest
from own_database import Clock, DatabaseUrls
from people import member
from psycopg import sql
from rows.spending import QUOTE, spent
from rows.stage import Stage, call, say
from rows.tasks import claim_delivery

from models.database.tables import Base
from models.database.transactions import transaction
from models.flow.begin import sessions
from models.notices.link import Link, issue
from models.operate import due, removals
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.outbox.removal import Removal
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.row import Session
from workers.sweeps import deleting

OF_SESSIONS = sorted(
    name
    for name, table in Base.metadata.tables.items()
    if "session_id" in table.columns and name not in {"turn_usage", "delivery", "approval_change", "notification", "slack_reply"}
)
"""The tables with rows of sessions. Usage is kept, and the outbox tells others of the deletion."""


def delete(stage: Stage, session_id: str) -> None:
    stage.locked(session_id, sessions.delete)


def full(stage: Stage) -> str:
    """A session with a row in nearly every table."""
    session = stage.session(bash="always_ask", read="always_allow", max_turns=9)
    stage.message(session)
    first, second, third = stage.reply(session, call(), call(), call("read", file_path="x"))
    stage.run_call(third)
    stage.confirm(session, first.id, scope="session")
    stage.run_call(stage.get(type(first), first.id))
    approval = next(row for row in stage.approvals(session) if row.tool_call_id == second.id)
    anna = member(stage)
    with transaction(stage.workspace_id) as db:
        issue(db, approval, anna.person_id)
    stage.confirm(session, second.id, "deny")
    stage.reply(session, say("Done."))
    return session


def rows(database_urls: DatabaseUrls, session_id: str) -> dict[str, int]:
    """How many rows of the session there are, by table, as a superuser sees them."""
    with psycopg.connect(database_urls.admin) as db:
        count = sql.SQL("SELECT count(*) FROM {} WHERE session_id = %s")
        counts = {name: db.execute(count.format(sql.Identifier(name)), [session_id]).fetchone() for name in OF_SESSIONS}
    return {name: row[0] for name, row in counts.items() if row and row[0]}


def test_nobody_sees_any_row_of_a_deleted_session(stage: Stage, database_urls: DatabaseUrls) -> None:
    session, other = full(stage), full(stage)
    before = rows(database_urls, session)
    assert {"approval", "approval_grant", "attempt", "event", "link", "tool_call", "turn"} <= before.keys()
    delete(stage, session)
    assert rows(database_urls, session).keys() >= before.keys(), "no sweep has run"
    with transaction(stage.workspace_id) as db:
        assert [row.id for row in db.find(Session)] == [other]
        for table in (Approval, Grant, Link):
            assert {row.session_id for row in db.find(table)} == {other}
        for name in before:
            assert db.value(f"SELECT count(*) FROM {name} WHERE session_id = %(id)s", id=session) == 0
    assert sessions.gone([session, other]) == {session}


def test_its_rows_are_removed_in_batches_by_one_sweep(
    stage: Stage, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(removals, "BATCH", 1)
    session, other = full(stage), full(stage)
    kept = rows(database_urls, other)
    delete(stage, session)
    deleting.remove_deleted()
    assert rows(database_urls, session) == {}
    assert rows(database_urls, other) == kept
    assert due.removals() == [], "nothing is left to remove"
    clock.advance(61)
    deleting.remove_deleted()
    with transaction(stage.workspace_id) as db:
        assert db.find(Removal) == []


def test_a_question_about_money_is_removed_with_its_session(stage: Stage, database_urls: DatabaseUrls) -> None:
    stage.quote = QUOTE
    session = spent(stage)
    [approval] = stage.approvals(session)
    with transaction(stage.workspace_id) as db:
        issue(db, approval, member(stage).person_id)
    stage.decide(approval, result="deny")
    delete(stage, session)
    while removals.remove_batch(stage.workspace_id, session):
        pass
    assert rows(database_urls, session) == {}


def test_an_environment_can_be_deleted_right_after_its_sessions(stage: Stage) -> None:
    session = stage.session(self_hosted=True)
    stage.propose(session)
    stage.send(session, {"type": "user.interrupt"})
    environment_id = stage.read(session).environment_id
    delete(stage, session)
    with transaction(stage.workspace_id) as db:
        environment = sessions.Environment.find(db, environment_id)
        environment.delete(db, stage.principal)
    deleting.remove_deleted()


def test_the_deliveries_of_a_deleted_endpoint_are_sent_to_nobody_and_removed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(removals, "BATCH", 1)
    with transaction(stage.workspace_id) as db:
        fields = {"url": "https://example.com", "enabled_events": ["session.created"], "name": "", "description": ""}
        gone, kept = [Endpoint.create(db, stage.principal, NewEndpoint(**fields))[0] for _ in range(2)]
    for _ in range(3):
        stage.session()
    with transaction(stage.workspace_id) as db:
        Endpoint.find(db, gone.id).delete(db, stage.principal)
    with transaction(stage.workspace_id) as db:
        deliveries = db.find(Delivery, "WHERE endpoint_id = %(id)s", id=gone.id)
        assert len(deliveries) == 3
        assert claim_delivery(db, deliveries[0].id) is None
    deleting.remove_deleted()
    with transaction(stage.workspace_id) as db:
        assert {row.endpoint_id for row in db.find(Delivery)} == {kept.id}
