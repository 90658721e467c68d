"""Rule 4: what a commit makes ready is told of at once, and by the dispatch sweep where that was lost; what is not, is not."""

from itertools import pairwise
from typing import Any

import pytest
from rows.stage import Stage, call, say

from models import flow
from models.database import transactions as database
from models.flow import due, queued
from models.session.tool_call import ToolCall
from models.session.turn import Turn


@pytest.fixture
def hints(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What every commit tells of from here on: the task's name and the row's id."""
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(database, "_send", database._send)  # put back what was there
    database.on_commit(lambda outbox: told.extend((hint.task, hint.args[0]) for hint in outbox.hints))
    return told


def turn_of(stage: Stage, session: str) -> tuple[str, str]:
    return ("turn.run", stage.read(session).turn_id or "")


def test_each_step_of_a_run_is_told_of_by_the_commit_that_makes_it_ready(stage: Stage, hints: list[tuple[str, str]]) -> None:
    session = stage.session(bash="always_ask", read="always_allow")
    stage.message(session)
    first = turn_of(stage, session)
    asked, free = stage.reply(session, call(), call("read", file_path="x"))
    stage.run_call(free)
    stage.confirm(session, asked.id)
    stage.run_call(asked)
    second = turn_of(stage, session)
    stage.reply(session, say("Done."))
    look = ("tool.look", stage.approvals(session)[0].id)
    assert hints == [first, look, ("tool.run", free.id), ("tool.run", asked.id), second]


def test_what_is_taken_from_a_dead_worker_is_told_of_at_once(stage: Stage, hints: list[tuple[str, str]], clock: Any) -> None:
    session = stage.session(write="always_allow")
    stage.message(session)
    turn = stage.claim(session)
    assert turn
    clock.advance(60)
    stage.rescue(turn)
    stage.check(session)
    [found] = stage.reply(session, call("write", file_path="a", content="b"))
    held = stage.claim_call(found)
    assert held
    clock.advance(60)
    stage.rescue(held)
    stage.check(session)
    again, of_call = ("turn.run", turn.id), ("tool.run", found.id)
    assert hints == [again, again, of_call, of_call]


def test_a_grant_is_told_of_and_so_is_what_it_releases(stage: Stage, hints: list[tuple[str, str]]) -> None:
    session = stage.session()
    stage.message(session)
    first, second = stage.reply(session, call(command="a"), call(command="b"))
    hints.clear()
    stage.confirm(session, first.id, scope="session")
    assert [task for task, _ in hints] == ["sweep.release_granted", "tool.run"]
    flow.release_waiting(stage.workspace_id, session)
    assert hints[2:] == [("tool.run", second.id)]


def test_a_turn_that_is_tried_again_later_is_told_of_when_it_is_due(stage: Stage, hints: list[tuple[str, str]], clock: Any) -> None:
    """Not before; and then at the next beat, as nothing was sent yet."""
    session = stage.session()
    stage.message(session)
    turn = stage.claim(session)
    assert turn
    hints.clear()
    stage.fail(turn, retry_after=3)
    assert hints == []
    clock.advance(2)
    assert queued.hints(Turn) == []
    assert stage.claim(session) is None
    clock.advance(2)
    assert [hint.args[0] for hint in queued.hints(Turn)] == [turn.id]
    assert stage.claim(session)


def test_a_hint_that_was_lost_is_sent_again_after_five_seconds_however_long_people_took(stage: Stage, clock: Any) -> None:
    """A call that waited for a day was ready only when it was allowed."""
    session = stage.session()
    stage.message(session)
    [found] = stage.reply(session, call())
    clock.advance(80_000)
    stage.confirm(session, found.id)
    clock.advance(4)
    assert queued.hints(ToolCall) == []
    clock.advance(2)
    assert [hint.args[0] for hint in queued.hints(ToolCall)] == [found.id]
    assert queued.hints(ToolCall) == [], "it was sent just now"


def test_what_nobody_takes_is_told_of_less_and_less_often_but_every_minute(stage: Stage, clock: Any) -> None:
    """Not again before half of its age; a minute at most."""
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


def test_what_runs_rests_or_is_not_due_is_not_told_of(stage: Stage, clock: Any) -> None:
    session = stage.session(bash="always_allow", read="always_ask")
    stage.message(session)
    found, _asked = stage.reply(session, call(), call("read", file_path="x"))
    assert stage.claim_call(found)
    clock.advance(30)
    assert queued.hints(Turn) == []
    assert queued.hints(ToolCall) == []
    assert due.lapsed(ToolCall) == []
    clock.advance(16)
    assert [each.id for each in due.lapsed(ToolCall)] == [found.id]
    stage.rescue(stage.get(ToolCall, found.id))
    assert due.lapsed(ToolCall) == []
