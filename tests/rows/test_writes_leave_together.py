"""Writes are collected and leave in one message; nobody who reads, fails or commits can tell the difference."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from rows.stage import Stage, call, say

from models import flow
from models.database.rows import Db, Stale
from models.database.transactions import is_transient, transaction
from models.session.attempt import Attempt
from models.session.reply import Reply
from models.session.session import Session
from models.session.turn import Turn


@pytest.fixture
def turn(stage: Stage) -> Turn:
    """A queued turn."""
    session_id = stage.session()
    stage.message(session_id)
    with transaction(stage.workspace_id) as db:
        return db.find(Turn, "WHERE session_id = %(session_id)s", session_id=session_id)[0]


def status(stage: Stage, turn: Turn) -> str:
    with transaction(stage.workspace_id) as db:
        return str(db.value("SELECT status FROM turn WHERE id = %(id)s", id=turn.id))


def updates(db: Db, table: str) -> int:
    """How many rows of a table this connection has updated, by Postgres' own count."""
    return int(db.value("SELECT pg_stat_get_xact_tuples_updated(CAST(%(table)s AS regclass))", table=table))


def test_what_was_written_is_read_in_the_same_transaction(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        db.move(held, "running", fence=held.fence + 1)
        assert db.value("SELECT status FROM turn WHERE id = %(id)s", id=turn.id) == "running"


def columns(turn: Turn) -> dict[str, Any]:
    return {key: getattr(turn, key) for key in sa.inspect(Turn).column_attrs.keys()}  # noqa: SIM118 - a collection of columns


def test_what_is_set_on_a_row_is_written(stage: Stage, turn: Turn) -> None:
    """A row is one object, however often it is read."""
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        held.worker = "somebody"
        assert db.value("SELECT worker FROM turn WHERE id = %(id)s", id=turn.id) == "somebody", "a read sees it"
        assert db.find(Turn, "WHERE id = %(id)s", id=turn.id) == [held]
    assert stage.get(Turn, turn.id).worker == "somebody"


def test_only_the_columns_that_changed_are_written(stage: Stage, turn: Turn) -> None:
    """A heartbeat renews a lease beside the lock."""
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        assert held.hinted_at
        with transaction(stage.workspace_id) as other:
            other.write("UPDATE turn SET hinted_at = NULL WHERE id = %(id)s", id=turn.id)
        held.worker = "somebody"
    assert (stage.get(Turn, turn.id).worker, stage.get(Turn, turn.id).hinted_at) == ("somebody", None)


def test_json_that_python_takes_for_equal_is_written(stage: Stage, turn: Turn) -> None:
    for quote in ({"n": 1}, {"n": True}):
        with transaction(stage.workspace_id) as db:
            db.get_one(Turn, turn.id).quote = quote
        assert str(stage.get(Turn, turn.id).quote) == str(quote)


def test_a_row_with_a_key_of_two_columns_is_written_too_and_no_other(stage: Stage, clock: Any) -> None:
    session_id = stage.session(read="always_allow")
    stage.message(session_id)
    [found] = stage.reply(session_id, call("read", file_path="x"))
    assert stage.claim_call(found)
    clock.advance(60)
    stage.rescue(found)
    assert stage.claim_call(found)
    with transaction(stage.workspace_id) as db:
        _first, second = db.find(Attempt, "WHERE tool_call_id = %(call)s ORDER BY number", call=found.id)
        second.output = "so far"
    with transaction(stage.workspace_id) as db:
        assert [db.get_one(Attempt, found.id, number).output for number in (1, 2)] == [None, "so far"]


def test_what_is_set_on_a_row_once_it_was_inserted_is_written_too(stage: Stage, turn: Turn) -> None:
    """It is the transaction's as if it had been read."""
    with transaction(stage.workspace_id) as db:
        new = Turn(**columns(turn) | {"id": "turn_other", "number": 9})
        db.insert(new)
        assert db.get(Turn, "turn_other") is new
        new.worker = "somebody"
    assert stage.get(Turn, "turn_other").worker == "somebody"


def test_a_new_row_is_inserted_with_what_was_set_on_it_since(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        before = updates(db, "reply")
        db.insert(reply := Reply(turn_id=turn.id, workspace_id=stage.workspace_id, content=[]))
        reply.content = [{"type": "text", "text": "later"}]
        assert updates(db, "reply") == before
    assert stage.get(Reply, turn.id).content == [{"type": "text", "text": "later"}]


def test_what_was_set_on_a_row_is_written_with_its_move(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        before, held = updates(db, "turn"), db.get_one(Turn, turn.id)
        held.worker = "somebody"
        db.move(held, "cancelled")
        assert updates(db, "turn") == before + 1
    assert (stage.get(Turn, turn.id).worker, stage.get(Turn, turn.id).status) == ("somebody", "cancelled")


def test_each_transaction_of_a_cycle_updates_its_session_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    locked = stage.locked

    def counted(session_id: str, verb: Callable[[Db, Session], Any]) -> Any:
        def run(db: Db, session: Session) -> Any:
            before, result = updates(db, "session"), verb(db, session)
            counts.append(updates(db, "session") - before)
            return result

        return locked(session_id, run)

    monkeypatch.setattr(stage, "locked", counted)
    session_id = stage.session()
    stage.message(session_id)
    [asked] = stage.reply(session_id, call())
    stage.confirm(session_id, asked.id)
    held = stage.claim_call(asked)
    assert held
    stage.finish_call(held)
    stage.reply(session_id, say("Done."))
    assert counts == [1] * 8


def test_a_row_that_was_moved_meanwhile_stops_the_whole_transaction(stage: Stage, turn: Turn) -> None:
    def meet() -> None:
        with transaction(stage.workspace_id) as db:
            mine = db.get_one(Turn, turn.id)
            with transaction(stage.workspace_id) as other:
                other.move(other.get_one(Turn, turn.id), "cancelled")
            db.get_one(Session, turn.session_id).title = "never"
            db.move(mine, "running", fence=turn.fence + 1)

    with pytest.raises(Stale, match="no longer queued"):
        meet()
    assert status(stage, turn) == "cancelled"
    assert stage.read(turn.session_id).title is None


def test_a_row_that_was_taken_back_and_taken_again_stops_it_too(stage: Stage, turn: Turn) -> None:
    """I7: its status is as it was, its fence is not."""

    def meet() -> None:
        with transaction(stage.workspace_id) as db:
            mine = db.get_one(Turn, turn.id)
            with transaction(stage.workspace_id) as other:
                theirs = other.get_one(Turn, turn.id)
                other.move(theirs, "running", fence=turn.fence + 1)
                other.move(theirs, "queued")
            db.move(mine, "running", fence=turn.fence + 1)

    with pytest.raises(Stale):
        meet()
    assert status(stage, turn) == "queued"


def test_no_verb_makes_a_transition_that_the_tables_do_not_know(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        with pytest.raises(ValueError, match="done"):
            db.move(held, "done")
    assert status(stage, turn) == "queued"


def test_a_row_that_was_read_before_its_lock_is_as_it_was_under_it(stage: Stage, turn: Turn) -> None:
    """Rule 2: what is decided on is what the lock showed."""
    with transaction(stage.workspace_id) as db:
        before = db.get_one(Session, turn.session_id)
        assert before.unread == 1
        stage.message(turn.session_id)
        assert flow.lock(db, turn.session_id) is before
        assert before.unread == 2


def test_a_row_that_was_read_is_read_again_where_its_lock_is_asked_for(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        [held] = db.find(Turn, "WHERE id = %(id)s", id=turn.id)
        with transaction(stage.workspace_id) as other:
            other.get_one(Turn, turn.id).worker = "somebody"
        assert db.get(Turn, turn.id, lock=True) is held
        assert held.worker == "somebody"


def test_a_row_that_is_gone_stops_it_too(stage: Stage, turn: Turn) -> None:
    def meet() -> None:
        with transaction(stage.workspace_id) as db:
            mine = db.get_one(Turn, turn.id)
            mine.id = "turn_gone"
            db.move(mine, "running", fence=turn.fence + 1)

    with pytest.raises(Stale, match="turn_gone is no longer queued"):
        meet()


def test_what_was_set_on_a_row_that_is_gone_stops_it_too(stage: Stage, turn: Turn) -> None:
    """Nobody is told that it was written."""

    def meet() -> None:
        with transaction(stage.workspace_id) as db:
            [mine] = db.find(Turn, "WHERE id = %(id)s", id=turn.id)
            mine.id = "turn_gone"

    with pytest.raises(Stale, match="a row of turn is gone"):
        meet()


def test_a_failure_that_was_swallowed_is_not_committed_as_if_nothing_had_been(stage: Stage, turn: Turn) -> None:
    def swallow() -> None:
        with transaction(stage.workspace_id) as db:
            db.move(db.get_one(Turn, turn.id), "running", fence=turn.fence + 1)
            with pytest.raises(psycopg.errors.DivisionByZero):
                db.rows("SELECT 1 / 0")

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        swallow()
    assert status(stage, turn) == "queued"


def test_what_the_database_refuses_is_an_error_as_any_other(stage: Stage, turn: Turn) -> None:
    twin = columns(turn)

    def insert_twice() -> None:
        with transaction(stage.workspace_id) as db:
            db.insert(Turn(**twin | {"id": "turn_other", "number": 9}))
            db.insert(Turn(**twin))

    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        insert_twice()
    assert not is_transient(refused.value)
    with transaction(stage.workspace_id) as db:
        assert db.get(Turn, "turn_other") is None


@pytest.mark.parametrize("then", ["commit", "read"])
def test_a_connection_that_dies_before_the_commit_is_a_passing_failure(stage: Stage, turn: Turn, then: str) -> None:
    def die() -> None:
        with transaction(stage.workspace_id) as db:
            db.move(db.get_one(Turn, turn.id), "running", fence=turn.fence + 1)
            own = db.connection.info.backend_pid
            with transaction(stage.workspace_id) as other:
                other.rows("SELECT pg_terminate_backend(%(pid)s, 5000)", pid=own)
            if then == "read":
                db.rows("SELECT 1")

    with pytest.raises(psycopg.OperationalError) as died:
        die()
    assert is_transient(died.value)
    assert status(stage, turn) == "queued"
