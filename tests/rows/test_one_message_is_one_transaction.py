"""The statements of one message to Postgres are one transaction, which nothing has to begin or to end."""

from collections.abc import Sequence

import psycopg
import pytest
from rows.stage import Stage

from models.database.exchange import Connection, Rows, Statement
from models.database.transactions import transaction

TITLE = "UPDATE session SET title = %(title)s WHERE id = %(id)s"
FAILS = "UPDATE session SET max_turns = 1 / %(zero)s"
WITHOUT_ITS_CALL = """
    INSERT INTO call_input (tool_call_id, workspace_id, input) VALUES ('call_none', current_setting('assent.workspace'), '{}')
"""
"""Breaks a foreign key that Postgres checks at the end of the transaction."""


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of statements of each message, as it is sent."""
    exchange, sizes = Connection.exchange, list[int]()

    def exchange_and_note(connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
        sizes.append(len(statements))
        return exchange(connection, statements)

    monkeypatch.setattr(Connection, "exchange", exchange_and_note)
    return sizes


def write_all(stage: Stage, *writes: Statement) -> None:
    """Write in one transaction."""
    with transaction(stage.workspace_id) as db:
        for write in writes:
            db.queue(write)


def title(stage: Stage, session_id: str) -> str | None:
    """Return the session's title, as another transaction sees it."""
    with transaction(stage.workspace_id, only_reads=True) as db:
        value: str | None = db.value("SELECT title FROM session WHERE id = %(id)s", id=session_id)
        return value


def test_writes_alone_are_one_message(stage: Stage, messages: list[int]) -> None:
    session_id = stage.session()
    messages.clear()
    with transaction(stage.workspace_id) as db:
        db.write(TITLE, id=session_id, title="One")
        db.write(TITLE, id=session_id, title="Two")
    assert messages == [3], "the workspace, and the two writes"
    assert title(stage, session_id) == "Two"


def test_a_write_that_fails_takes_those_before_it_back(stage: Stage) -> None:
    session_id = stage.session()
    with pytest.raises(psycopg.errors.DivisionByZero):
        write_all(stage, Statement(TITLE, {"id": session_id, "title": "Lost"}), Statement(FAILS, {"zero": 0}))
    assert title(stage, session_id) is None


def test_a_constraint_that_is_checked_at_the_end_takes_everything_back(stage: Stage) -> None:
    session_id = stage.session()
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        write_all(stage, Statement(TITLE, {"id": session_id, "title": "Lost"}), Statement(WITHOUT_ITS_CALL, {}))
    assert title(stage, session_id) is None


def test_each_read_is_one_message_and_leaves_nothing_open(stage: Stage, messages: list[int]) -> None:
    session_id = stage.session()
    messages.clear()
    with transaction(stage.workspace_id, only_reads=True) as db:
        for _ in range(2):
            assert db.rows("SELECT id FROM session") == [(session_id,)]
            assert not db.connection.in_transaction
    assert messages == [2, 2], "the workspace, and the query"


def test_a_read_sees_the_workspace_of_its_transaction_alone(stage: Stage) -> None:
    """Also on a connection that has served another workspace."""
    stage.session()
    with transaction(stage.workspace_id, only_reads=True) as db:
        assert db.rows("SELECT FROM session")
    for workspace_id in ("wrkspc_other", ""):
        with transaction(workspace_id, only_reads=True) as db:
            assert db.rows("SELECT FROM session") == []


def test_what_only_reads_cannot_write(stage: Stage) -> None:
    session_id = stage.session()
    with pytest.raises(AssertionError, match="only reads"), transaction(stage.workspace_id, only_reads=True) as db:
        db.write(TITLE, id=session_id, title="Lost")
    assert title(stage, session_id) is None
