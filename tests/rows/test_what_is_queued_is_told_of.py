"""A commit that makes a row ready sends a hint, and the sweep sends another if the hint was lost."""

from itertools import pairwise
from typing import Any

import pytest
from rows.stage import Stage, call, say

from models.database import transactions as database
from models.flow.judge.grants import release_waiting
from models.operate import due, queued
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn


@pytest.fixture
def hints(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The hints of every commit from here on: the task's name and the row's id."""
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(database, "_send", database._send)  # monkeypatch restores it after the test
    database.on_commit(lambda outbox: sent.extend((hint.task, hint.args[0]) for hint in outbox.hints))
    return sent


def turn_of(stage: Stage, session: str) -> tuple[str, str]:
    return ("turn.run", stage.thread(session).turn_id or "")


def test_each_step_of_a_run_is_hinted_by_the_commit_that_makes_it_ready(stage: Stage, hints: list[tuple[str, str]]) -> None:
    session = stage.session(bash="always_ask", read="always_allow")
    stage.message(session)
    first = turn_of(stage, session)
    asked, free = stage.reply(session, call(command="ls", working_directory="src"), call("read", file_path="x"))
    stage.run_call(free)
    stage.confirm(session, asked.id)
    stage.run_call(asked)
    second = turn_of(stage, session)
    stage.reply(session, say("Done."))
    look = ("tool.look", stage.approvals(session)[0].id)
    assert hints == [first, look, ("tool.run", free.id), ("tool.run", asked.id), second]


def test_a_row_taken_back_from_a_dead_worker_is_hinted_at_once(stage: Stage, hints: list[tuple[str, str]], clock: Any) -> None:
    session = stage.session(write="always_allow")
    stage.message(session)
    turn = stage.begin(session)
    stage.lose(turn, clock)
    stage.check(session)
    [tool_call] = stage.reply(session, call("write", file_path="a", content="b"))
    stage.lose(stage.begin_call(tool_call), clock)
    stage.check(session)
    again, of_call = ("turn.run", turn.id), ("tool.run", tool_call.id)
    assert hints == [again, again, of_call, of_call]


def test_a_new_grant_and_the_calls_that_it_releases_are_hinted(stage: Stage, hints: list[tuple[str, str]]) -> None:
    session = stage.session()
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    hints.clear()
    stage.confirm(session, first.id, scope="session")
    assert [task for task, _ in hints] == ["sweep.release_granted", "tool.run"]
    release_waiting(stage.workspace_id, session)
    assert hints[2:] == [("tool.run", second.id)]


def test_a_turn_to_be_retried_is_hinted_once_it_is_due(stage: Stage, hints: list[tuple[str, str]], clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    turn = stage.begin(session)
    hints.clear()
    stage.fail(turn, retry_after=3)
    assert hints == []
    clock.advance(2)
    assert queued.hints(Turn) == []
    assert stage.claim(session) is None
    clock.advance(2)
    assert [hint.args[0] for hint in queued.hints(Turn)] == [turn.id]
    assert stage.claim(session)


def test_a_lost_hint_is_sent_again_after_five_seconds(stage: Stage, clock: Any) -> None:
    """Counted from the moment when the call became ready, and not from its creation."""
    session = stage.session()
    tool_call = stage.propose(session)
    clock.advance(80_000)
    stage.confirm(session, tool_call.id)
    clock.advance(4)
    assert queued.hints(ToolCall) == []
    clock.advance(2)
    assert [hint.args[0] for hint in queued.hints(ToolCall)] == [tool_call.id]
    assert queued.hints(ToolCall) == [], "the pause counts from the last hint"


def test_a_row_that_nobody_claims_is_hinted_less_often_but_at_least_every_minute(stage: Stage, clock: Any) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    stage.reply(session, call())
    sent = []
    for second in range(0, 240, 4):
        sent += [second] * len(queued.hints(ToolCall))
        clock.advance(4)
    pauses = [later - before for before, later in pairwise(sent)]
    assert sent[0] <= 8
    assert pauses == sorted(pauses)
    assert 60 <= pauses[-1] <= 64


def test_a_row_that_runs_or_waits_for_a_person_is_not_hinted(stage: Stage, clock: Any) -> None:
    session = stage.session(bash="always_allow", read="always_ask")
    stage.message(session)
    tool_call, _asked = stage.reply(session, call(), call("read", file_path="x"))
    assert stage.claim_call(tool_call)
    clock.advance(30)
    assert queued.hints(Turn) == []
    assert queued.hints(ToolCall) == []
    assert due.lapsed(ToolCall) == []
    clock.advance(16)
    assert [each.id for each in due.lapsed(ToolCall)] == [tool_call.id]
    stage.rescue(stage.get(ToolCall, tool_call.id))
    assert due.lapsed(ToolCall) == []
