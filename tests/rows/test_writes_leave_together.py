"""Writes are collected and leave in one message; nobody who reads, fails or commits can tell the difference."""

from typing import Any

import pytest
import sqlalchemy as sa
from rows.stage import Stage, call, say
from sqlalchemy.exc import DBAPIError, IntegrityError, PendingRollbackError

from models import flow
from models.attempt import Attempt
from models.db import passes, transaction
from models.pipeline import Statement, ask, read_ahead
from models.rows import find
from models.session import Session
from models.turn import Turn
from models.writes import Stale, insert, move


@pytest.fixture
def turn(stage: Stage) -> Turn:
    """A queued turn."""
    session_id = stage.session()
    stage.message(session_id)
    with transaction(stage.workspace_id) as db:
        return db.scalars(sa.select(Turn).where(Turn.session_id == session_id)).one()


def status(stage: Stage, turn: Turn) -> str:
    with transaction(stage.workspace_id) as db:
        return str(db.scalar(sa.select(Turn.status).where(Turn.id == turn.id)))


def test_what_was_written_is_read_in_the_same_transaction(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        move(db, held, "running", fence=held.fence + 1)
        assert db.scalar(sa.select(Turn.status).where(Turn.id == turn.id)) == "running"


def columns(turn: Turn) -> dict[str, Any]:
    return {key: getattr(turn, key) for key in sa.inspect(Turn).column_attrs.keys()}  # noqa: SIM118 - a collection of columns


@pytest.mark.parametrize("asked", ["never", "first", "last"])
def test_what_is_set_on_a_row_is_written_whether_or_not_the_orm_is_asked(stage: Stage, turn: Turn, asked: str) -> None:
    """One row, whoever reads it."""
    with transaction(stage.workspace_id) as db:
        if asked == "first":
            assert db.scalars(sa.select(Turn).where(Turn.id == turn.id)).one().worker is None
        [held] = find(db, Turn, "FROM turn WHERE id = %(id)s", id=turn.id)
        held.worker = "somebody"
        if asked == "last":
            assert db.scalars(sa.select(Turn).where(Turn.id == turn.id)).one() is held
        assert db.get(Turn, turn.id) is held
        assert db.is_of_the_orm == (asked != "never")
    assert stage.get(Turn, turn.id).worker == "somebody"


@pytest.mark.parametrize("by_orm", [False, True])
def test_what_somebody_wrote_beside_it_without_a_lock_is_kept(stage: Stage, turn: Turn, by_orm: bool) -> None:
    """As a heartbeat renews a lease: only what changed is written."""
    with transaction(stage.workspace_id) as db:
        [held] = find(db, Turn, "FROM turn WHERE id = %(id)s", id=turn.id)
        assert held.hinted_at
        with transaction(stage.workspace_id) as other:
            other.execute(sa.update(Turn).where(Turn.id == turn.id).values(hinted_at=None))
        held.worker = "somebody"
        if by_orm:
            db.flush()
    assert (stage.get(Turn, turn.id).worker, stage.get(Turn, turn.id).hinted_at) == ("somebody", None)


def test_a_row_with_a_key_of_two_columns_is_written_too_and_no_other(stage: Stage, clock: Any) -> None:
    session_id = stage.session(read="always_allow")
    stage.message(session_id)
    [found] = stage.reply(session_id, call("read", file_path="x"))
    assert stage.claim_call(found)
    clock.advance(60)
    stage.rescue(found)
    assert stage.claim_call(found)
    with transaction(stage.workspace_id) as db:
        _first, second = find(db, Attempt, "FROM attempt WHERE tool_call_id = %(call)s ORDER BY number", call=found.id)
        second.output = "so far"
    with transaction(stage.workspace_id) as db:
        assert [db.get_one(Attempt, (found.id, number)).output for number in (1, 2)] == [None, "so far"]


def test_what_is_set_on_a_row_once_it_was_inserted_is_written_too(stage: Stage, turn: Turn) -> None:
    """It is the transaction's as if it had been read."""
    with transaction(stage.workspace_id) as db:
        new = Turn(**columns(turn) | {"id": "turn_other", "number": 9})
        insert(db, new)
        assert db.get(Turn, "turn_other") is new
        new.worker = "somebody"
    assert stage.get(Turn, "turn_other").worker == "somebody"


def test_a_row_that_was_moved_meanwhile_stops_the_whole_transaction(stage: Stage, turn: Turn) -> None:
    def meet() -> None:
        with transaction(stage.workspace_id) as db:
            mine = db.get_one(Turn, turn.id)
            with transaction(stage.workspace_id) as other:
                move(other, other.get_one(Turn, turn.id), "cancelled")
            db.get_one(Session, turn.session_id).title = "never"
            move(db, mine, "running", fence=turn.fence + 1)

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
                move(other, theirs, "running", fence=turn.fence + 1)
                move(other, theirs, "queued")
            move(db, mine, "running", fence=turn.fence + 1)

    with pytest.raises(Stale):
        meet()
    assert status(stage, turn) == "queued"


def test_no_verb_makes_a_transition_that_the_tables_do_not_know(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        held = db.get_one(Turn, turn.id)
        with pytest.raises(ValueError, match="done"):
            move(db, held, "done")
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
        [held] = find(db, Turn, "FROM turn WHERE id = %(id)s", id=turn.id)
        with transaction(stage.workspace_id) as other:
            other.get_one(Turn, turn.id).worker = "somebody"
        assert db.get(Turn, turn.id, with_for_update=True, populate_existing=True) is held
        assert held.worker == "somebody"


def test_a_claim_that_read_the_past_ahead_has_the_prompt_that_it_put_together(stage: Stage, turn: Turn) -> None:
    with transaction(stage.workspace_id) as db:
        read_ahead(db, *flow.reads_of_claim(turn.session_id))
        session = flow.lock(db, turn.session_id)
        claimed = flow.claim_turn(db, session, turn.id, "worker")
        assert flow.history(db, session.id, claimed) == [{"role": "user", "content": [say("Do it.")]}]


def test_a_row_that_is_gone_stops_it_too(stage: Stage, turn: Turn) -> None:
    def meet() -> None:
        with transaction(stage.workspace_id) as db:
            mine = db.get_one(Turn, turn.id)
            mine.id = "turn_gone"
            move(db, mine, "running", fence=turn.fence + 1)

    with pytest.raises(Stale, match="turn_gone is no longer queued"):
        meet()


def test_what_was_set_on_a_row_that_is_gone_stops_it_too(stage: Stage, turn: Turn) -> None:
    """Nobody is told that it was written."""

    def meet() -> None:
        with transaction(stage.workspace_id) as db:
            [mine] = find(db, Turn, "FROM turn WHERE id = %(id)s", id=turn.id)
            mine.id = "turn_gone"

    with pytest.raises(Stale, match="a row of turn is gone"):
        meet()


def test_a_failure_that_was_swallowed_is_not_committed_as_if_nothing_had_been(stage: Stage, turn: Turn) -> None:
    def swallow() -> None:
        with transaction(stage.workspace_id) as db:
            move(db, db.get_one(Turn, turn.id), "running", fence=turn.fence + 1)
            with pytest.raises(DBAPIError):
                ask(db, Statement("SELECT 1 / 0", {}))

    with pytest.raises(PendingRollbackError):
        swallow()
    assert status(stage, turn) == "queued"


def test_what_the_database_refuses_is_an_error_as_any_other(stage: Stage, turn: Turn) -> None:
    twin = columns(turn)

    def insert_twice() -> None:
        with transaction(stage.workspace_id) as db:
            insert(db, Turn(**twin | {"id": "turn_other", "number": 9}))
            insert(db, Turn(**twin))

    with pytest.raises(IntegrityError) as refused:
        insert_twice()
    assert not passes(refused.value)
    with transaction(stage.workspace_id) as db:
        assert db.get(Turn, "turn_other") is None


@pytest.mark.parametrize("then", ["commit", "ask", "ask the ORM"])
def test_a_connection_that_dies_before_the_commit_is_a_passing_failure(stage: Stage, turn: Turn, then: str) -> None:
    def die() -> None:
        with transaction(stage.workspace_id) as db:
            move(db, db.get_one(Turn, turn.id), "running", fence=turn.fence + 1)
            if then == "ask the ORM":
                db.pipeline.settle()
            own = db.pipeline.driver.info.backend_pid
            with transaction(stage.workspace_id) as other:
                other.execute(sa.select(sa.func.pg_terminate_backend(own, 5000)))
            if then == "ask":
                ask(db, Statement("SELECT 1", {}))
            elif then == "ask the ORM":
                db.scalar(sa.select(1))

    with pytest.raises(DBAPIError) as died:
        die()
    assert passes(died.value)
    assert status(stage, turn) == "queued"
