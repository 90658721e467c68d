"""A task's transaction is a lock with what is read under it, and the writes with their commit: one message each."""

from collections.abc import Sequence
from typing import Any

import pytest
from rows.stage import Stage

from models.db import transaction
from models.driver import Connection
from models.event import Event
from models.pipeline import Statement, ask, queue, read_ahead
from workers import turn as task
from workers.providers import Reply


class Exchanges:
    """What goes over the connections of this process, transaction by transaction."""

    def __init__(self) -> None:
        self.transactions: list[int] = []

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        exchange = Connection.exchange

        def counted(connection: Connection, statements: Sequence[tuple[str, dict[str, Any]]]) -> Any:
            if statements[0][0] == "BEGIN":
                self.transactions.append(0)
            self.transactions[-1] += 1
            return exchange(connection, statements)

        monkeypatch.setattr(Connection, "exchange", counted)


class _Calls:
    def ask(self, *_: object) -> Reply:
        return Reply([{"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "true"}}], "tool_use")


def test_a_turn_that_asks_for_a_tool_takes_two_for_its_claim_and_two_for_its_checkpoint(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "provider_for", lambda _model: _Calls())
    first = stage.session()
    stage.message(first)
    task.run(stage.read(first).turn_id, first, stage.workspace_id)  # the agent is read once in a process
    other = stage.session(of_agent=stage.read(first).agent_id)
    stage.message(other)
    turn_id = stage.read(other).turn_id
    seen = Exchanges()
    seen.watch(monkeypatch)
    task.run(turn_id, other, stage.workspace_id)
    assert seen.transactions == [2, 2]
    assert stage.read(other).status == "waiting"


def test_what_is_read_ahead_is_read_behind_what_was_queued_before_it(stage: Stage) -> None:
    """So a lock that is asked first is held, and a write that was queued is seen."""
    session_id = stage.session()
    titles = Statement("SELECT title FROM session WHERE id = %(id)s", {"id": session_id})
    with transaction(stage.workspace_id) as db:
        queue(db, Statement("UPDATE session SET title = 'new' WHERE id = %(id)s", {"id": session_id}))
        read_ahead(db, titles)
        ask(db, Event.queue(session_id))
        assert ask(db, titles) == [[("new",)]]


def test_what_was_read_ahead_is_told_once(stage: Stage) -> None:
    """Who asks again sees what was written meanwhile, each time."""
    session_id = stage.session()
    titles = Statement("SELECT title FROM session WHERE id = %(id)s", {"id": session_id})
    with transaction(stage.workspace_id) as db:
        read_ahead(db, titles)
        ask(db, Event.queue(session_id))
        assert ask(db, titles) == [[(None,)]]
        for title in ("new", "newer"):
            queue(db, Statement("UPDATE session SET title = %(title)s WHERE id = %(id)s", {"id": session_id, "title": title}))
            assert ask(db, titles) == [[(title,)]]


def test_what_was_read_ahead_of_one_row_answers_for_no_other(stage: Stage) -> None:
    """In the same words, that is; also where both are asked at once."""
    text = "SELECT id FROM session WHERE id = %(id)s"
    one, other = (Statement(text, {"id": stage.session()}) for _ in range(2))
    with transaction(stage.workspace_id) as db:
        read_ahead(db, one)
        assert ask(db, other) == [[(other.values["id"],)]]
        assert ask(db, other, one) == [[(each.values["id"],)] for each in (other, one)]
