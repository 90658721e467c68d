"""Writes are collected and sent in one message. Reads, failures and commits behave as if each were sent at once."""

from typing import Any

import psycopg
import pytest
from rows.stage import Stage, call

from models.database.rows import Stale
from models.database.tables import table_of
from models.database.transactions import is_transient, transaction
from models.flow.lock import lock
from models.session.row import Session
from models.session.thread.row import Thread
from models.session.tool_call.attempt import Attempt
from models.session.turn.reply import Reply
from models.session.turn.row import Turn


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


def test_a_write_is_read_in_the_same_transaction(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        db.move(held, "running", fence=held.fence + 1)
        assert db.value("SELECT status FROM turn WHERE id = %(id)s", id=turn.id) == "running"


def columns(turn: Turn) -> dict[str, Any]:
    return {name: getattr(turn, name) for name in table_of(Turn).columns}


def test_a_changed_attribute_is_written(stage: Stage, turn: Turn) -> None:
    """And a row is one object in a transaction."""
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        held.worker = "somebody"
        assert db.value("SELECT worker FROM turn WHERE id = %(id)s", id=turn.id) == "somebody", "a read sees it"
        assert db.find(Turn, "WHERE id = %(id)s", id=turn.id) == [held]
    assert stage.get(Turn, turn.id).worker == "somebody"


def test_only_the_columns_that_changed_are_written(stage: Stage, turn: Turn) -> None:
    """A heartbeat renews a lease without the session's lock."""
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        assert held.hinted_at
        with transaction(stage.workspace_id) as other:
            other.write("UPDATE turn SET hinted_at = NULL WHERE id = %(id)s", id=turn.id)
        held.worker = "somebody"
    assert (stage.get(Turn, turn.id).worker, stage.get(Turn, turn.id).hinted_at) == ("somebody", None)


def test_changed_json_that_is_equal_in_python_is_written(stage: Stage, turn: Turn) -> None:
    for quote in ({"n": 1}, {"n": True}):
        with transaction(stage.workspace_id) as db:
            db.get_one(Turn, turn.id).quote = quote
        assert str(stage.get(Turn, turn.id).quote) == str(quote)


def test_a_change_of_a_row_with_a_key_of_two_columns_changes_no_other_row(stage: Stage, clock: Any) -> None:
    session_id = stage.session(read="always_allow")
    tool_call = stage.propose(session_id, call("read", file_path="x"))
    stage.lose(stage.begin_call(tool_call), clock)
    stage.begin_call(tool_call)
    with transaction(stage.workspace_id) as db:
        _first, second = db.find(Attempt, "WHERE tool_call_id = %(call)s ORDER BY number", call=tool_call.id)
        second.output = "so far"
    with transaction(stage.workspace_id) as db:
        assert [db.get_one(Attempt, tool_call.id, number).output for number in (1, 2)] == [None, "so far"]


def test_a_change_of_an_inserted_row_is_written_after_it_was_read(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        new = Turn(**columns(turn) | {"id": "turn_other", "number": 9})
        db.insert(new)
        assert db.get(Turn, "turn_other") is new
        new.worker = "somebody"
    assert stage.get(Turn, "turn_other").worker == "somebody"


def test_a_change_of_a_row_that_is_not_sent_yet_is_written(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        db.insert(reply := Reply(turn_id=turn.id, workspace_id=stage.workspace_id, content=[]))
        reply.content = [{"type": "text", "text": "later"}]
    assert stage.get(Reply, turn.id).content == [{"type": "text", "text": "later"}]


def test_a_changed_attribute_is_written_with_a_move(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        held.worker = "somebody"
        db.move(held, "cancelled")
    assert (stage.get(Turn, turn.id).worker, stage.get(Turn, turn.id).status) == ("somebody", "cancelled")


def test_a_row_that_another_transaction_moved_stops_the_whole_transaction(stage: Stage, turn: Turn) -> None:
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


def test_a_row_with_its_old_status_and_a_new_fence_stops_the_transaction(stage: Stage, turn: Turn) -> None:

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


def test_only_transitions_of_the_table_are_possible(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        with pytest.raises(ValueError, match="done"):
            db.move(held, "done")
    assert status(stage, turn) == "queued"


def test_locking_a_row_refreshes_an_earlier_read(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        before = db.get_one(Thread, turn.session_id, turn.thread_id)
        assert before.unread == 1
        stage.message(turn.session_id)
        assert lock(db, turn.session_id, stage.principal).thread is before
        assert before.unread == 2


def test_reading_a_row_with_a_lock_refreshes_an_earlier_read(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        [held] = db.find(Turn, "WHERE id = %(id)s", id=turn.id)
        with transaction(stage.workspace_id) as other:
            other.get_one(Turn, turn.id).worker = "somebody"
        assert db.get(Turn, turn.id, lock=True) is held
        assert held.worker == "somebody"


def test_moving_a_row_that_is_gone_stops_the_transaction(stage: Stage, turn: Turn) -> None:
    def meet() -> None:
        with transaction(stage.workspace_id) as db:
            mine = db.get_one(Turn, turn.id)
            mine.id = "turn_gone"
            db.move(mine, "running", fence=turn.fence + 1)

    with pytest.raises(Stale, match="turn_gone is no longer queued"):
        meet()


def test_changing_a_row_that_is_gone_stops_the_transaction(stage: Stage, turn: Turn) -> None:
    def meet() -> None:
        with transaction(stage.workspace_id) as db:
            [mine] = db.find(Turn, "WHERE id = %(id)s", id=turn.id)
            mine.id = "turn_gone"

    with pytest.raises(Stale, match="a row of turn is gone"):
        meet()


def test_a_transaction_with_a_swallowed_failure_does_not_commit(stage: Stage, turn: Turn) -> None:
    def swallow() -> None:
        with transaction(stage.workspace_id) as db:
            db.move(db.get_one(Turn, turn.id), "running", fence=turn.fence + 1)
            with pytest.raises(psycopg.errors.DivisionByZero):
                db.rows("SELECT 1 / 0")

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        swallow()
    assert status(stage, turn) == "queued"


def test_a_refused_write_raises_the_database_s_error(stage: Stage, turn: Turn) -> None:
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
def test_the_loss_of_a_connection_before_the_commit_can_be_retried(stage: Stage, turn: Turn, then: str) -> None:
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
