"""A turn or a call that no worker can begin, whatever raises, is counted, steps back and ends. Its session and `/readyz` say so."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import LiteralString

import psycopg
import pytest
from own_database import Clock, DatabaseUrls
from rows.folding import claim
from rows.refusing import refusing
from rows.stage import Stage, call, say
from rows.tasks import work

from models.database.failure import Failure
from models.database.transactions import transaction
from models.operate import queued, readiness
from models.operate.failing import MOST_FAILURES
from models.pure.text import words
from models.session.row import Session
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.result import CallResult
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from workers import tool
from workers import turn as turns
from workers.sweeps import rescuing

BREAKS: dict[str, tuple[LiteralString, ...]] = {
    "unreadable spending": ("UPDATE session SET usage = '[7]', max_list_cost = 1",),
    "a constraint on the turn": ("turn", "NEW.status = 'running'"),
    "a constraint on events": ("event", "NEW.type = 'span.model_request_start'"),
}
"""Each keeps a turn from being claimed: a statement after which no code can read a row, or a refused write."""


Spoil = Callable[[LiteralString], None]


@pytest.fixture
def spoil(database_urls: DatabaseUrls) -> Spoil:
    """Runs a statement as the administrator, whom no right and no policy binds."""

    def run(statement: LiteralString) -> None:
        with psycopg.connect(database_urls.admin, autocommit=True) as db:
            db.execute(statement)

    return run


@pytest.fixture(params=BREAKS)
def unclaimable(stage: Stage, spoil: Spoil, database_urls: DatabaseUrls, request: pytest.FixtureRequest) -> Iterator[str]:
    """A session whose queued turn cannot be claimed."""
    session_id, (first, *more) = unread_turn(stage), BREAKS[request.param]
    if not more:
        spoil(first)
    with refusing(database_urls.admin, first, *more) if more else nullcontext():
        yield session_id


def run_turn(stage: Stage, session_id: str) -> None:
    """Do what a worker does with a hint of the session's turn."""
    work(turns.run, stage.thread(session_id).turn_id, session_id, stage.workspace_id)


def run_call(stage: Stage, tool_call: ToolCall) -> None:
    """Do what a worker does with a hint of the call."""
    work(tool.run, tool_call.id, tool_call.session_id, stage.workspace_id)


def failures(stage: Stage) -> list[Failure]:
    """What failed in the workspace."""
    with transaction(stage.workspace_id) as db:
        return db.find(Failure, "ORDER BY task, subject_id")


def unread_turn(stage: Stage) -> str:
    """A session with a finished run, and a queued turn of the next."""
    session_id = stage.session()
    stage.message(session_id)
    stage.reply(session_id, say("Hello."))
    stage.message(session_id, "Go on.")
    return session_id


def allowed_call(stage: Stage) -> ToolCall:
    """A call that people allowed and that is queued, beside nothing else."""
    session_id = stage.session(bash="always_ask", max_turns=9)
    tool_call = stage.propose(session_id)
    stage.confirm(session_id, tool_call.id)
    return tool_call


def test_a_turn_that_cannot_be_claimed_ends_and_its_session_says_so(stage: Stage, clock: Clock, unclaimable: str) -> None:
    for _ in range(MOST_FAILURES):
        assert stage.read(unclaimable).status == "running"
        run_turn(stage, unclaimable)
        clock.advance(100)
    session = stage.read(unclaimable)
    assert (session.status, session.stop_reason) == ("idle", {"type": "retries_exhausted"})
    assert stage.get(Turn, stage.thread(session.id).turn_id or "").status == "failed"
    *_, error, rest = stage.events(unclaimable)
    assert (error.type, rest.type) == ("session.error", "session.status_idle")
    assert error.body["error"]["retry_status"] == {"type": "exhausted"}
    assert f"{MOST_FAILURES} tries failed" in error.body["error"]["message"]
    [sentence] = readiness.failing(stage.workspace_id)
    assert sentence.startswith("turn.run failed at 1 row(s)")


def test_an_interrupt_ends_a_turn_that_cannot_be_claimed_and_a_new_message_is_taken(
    stage: Stage, clock: Clock, unclaimable: str
) -> None:
    run_turn(stage, unclaimable)
    stage.send(unclaimable, {"type": "user.interrupt"})
    assert stage.read(unclaimable).status == "idle"
    stage.message(unclaimable, "And now?")
    assert stage.read(unclaimable).status == "running"
    run_turn(stage, unclaimable)
    assert [row.failures for row in failures(stage)] == [1, 1], "of two turns"


UNREADABLE: dict[str, LiteralString] = {
    "replies": "UPDATE reply SET content = '7'",
    "a block of a reply": 'UPDATE reply SET content = \'[{"type": "text"}, 7]\'',
    "messages": "UPDATE event SET body = '{}' WHERE type = 'user.message'",
    "results": 'UPDATE call_result SET content = \'{"type": "text"}\'',
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_turns_that_cannot_be_read_are_left_out_and_the_model_is_told(stage: Stage, spoil: Spoil, kind: str) -> None:
    session_id = stage.session(bash="always_allow", max_turns=9)
    stage.run_call(stage.propose(session_id, call()))
    spoil(UNREADABLE[kind])
    turn, request = claim(stage, session_id)
    assert turn
    assert words.unreadable_turn() in str(request.messages)
    stage.reply(session_id, say("I see."), turn=turn)
    stage.message(session_id, "And now?")
    stage.reply(session_id, say("It works."))
    stage.check(session_id)


def test_the_next_message_is_answered_once_the_fault_is_gone(stage: Stage, clock: Clock, database_urls: DatabaseUrls) -> None:
    session_id = unread_turn(stage)
    with refusing(database_urls.admin, "turn", "NEW.status = 'running'"):
        for _ in range(MOST_FAILURES):
            run_turn(stage, session_id)
            clock.advance(100)
    stage.check(session_id)
    stage.message(session_id, "And now?")
    stage.reply(session_id, say("Now it works."))
    stage.check(session_id)
    assert "Go on." not in str(stage.history(session_id)), "the messages that no worker could take are left out"


def test_a_turn_that_failed_waits_for_the_end_of_its_pause_and_then_goes_on(
    stage: Stage, clock: Clock, database_urls: DatabaseUrls
) -> None:
    session_id = unread_turn(stage)
    with refusing(database_urls.admin, "turn", "NEW.status = 'running'"):
        for _ in range(MOST_FAILURES - 1):
            clock.advance(100)
            run_turn(stage, session_id)
    assert stage.claim(session_id) is None, "a hint during the pause of 80 s claims nothing"
    assert [hint.args[0] for hint in queued.hints(Turn)] == []
    clock.advance(100)
    assert [hint.args[0] for hint in queued.hints(Turn)] == [stage.thread(session_id).turn_id]
    assert stage.claim(session_id)
    stage.check(session_id)


@pytest.mark.parametrize("code", ["40001", "40P01", "55P03", "53300"])
def test_passing_errors_of_the_database_do_not_count(stage: Stage, clock: Clock, database_urls: DatabaseUrls, code: str) -> None:
    session_id = unread_turn(stage)
    with refusing(database_urls.admin, "turn", "NEW.status = 'running'", code):
        for _ in range(MOST_FAILURES + 1):
            run_turn(stage, session_id)
            clock.advance(400)
    assert [row.failures for row in failures(stage)] == [0]
    assert readiness.failing(stage.workspace_id) == []
    assert stage.claim(session_id)


def test_a_call_whose_input_cannot_be_read_gets_an_error_result_and_the_run_goes_on(
    stage: Stage, clock: Clock, spoil: Spoil
) -> None:
    tool_call = allowed_call(stage)
    spoil("UPDATE call_input SET input = '[7]'")
    for _ in range(MOST_FAILURES):
        assert stage.get(ToolCall, tool_call.id).status == "queued"
        run_call(stage, tool_call)
        clock.advance(100)
    settled = stage.get(ToolCall, tool_call.id)
    assert (settled.status, settled.is_error, settled.attempt) == ("refused", True, 0)
    assert "was not run" in stage.result(tool_call)
    [result] = stage.events(tool_call.session_id, "agent.tool_result")
    assert result.body["tool_use_id"] == tool_call.id
    stage.reply(tool_call.session_id, say("So be it."))
    stage.check(tool_call.session_id)
    assert readiness.failing(stage.workspace_id)[0].startswith("tool.run failed at 1 row(s)")


def test_an_interrupt_ends_a_call_whose_input_is_gone(stage: Stage, clock: Clock, spoil: Spoil) -> None:
    tool_call = allowed_call(stage)
    spoil("DELETE FROM call_input")
    run_call(stage, tool_call)
    stage.send(tool_call.session_id, {"type": "user.interrupt"})
    assert stage.get(ToolCall, tool_call.id).status == "cancelled"
    assert stage.read(tool_call.session_id).status == "idle"


def test_where_even_the_next_turn_is_refused_the_run_ends_as_by_an_interrupt(
    stage: Stage, clock: Clock, database_urls: DatabaseUrls
) -> None:
    tool_call = allowed_call(stage)
    with refusing(database_urls.admin, "attempt"), refusing(database_urls.admin, "turn", "NEW.status = 'queued'"):
        for _ in range(MOST_FAILURES):
            run_call(stage, tool_call)
            clock.advance(100)
    session = stage.read(tool_call.session_id)
    assert session.status == "idle"
    assert "The run could not go on" in (session.stop_reason or {})["message"]
    [error] = stage.events(tool_call.session_id, "session.error")
    assert error.body["error"]["type"] == "unknown_error"
    stage.check(tool_call.session_id)


def test_where_nothing_can_be_written_it_is_tried_on_and_the_operator_reads_of_it(
    stage: Stage, clock: Clock, database_urls: DatabaseUrls
) -> None:
    session_id = unread_turn(stage)
    with refusing(database_urls.admin, "event"):
        for _ in range(MOST_FAILURES + 2):
            run_turn(stage, session_id)
            clock.advance(400)
        assert stage.read(session_id).status == "running"
        assert readiness.failing(stage.workspace_id)
    assert stage.claim(session_id)
    stage.check(session_id)


def test_a_running_turn_that_cannot_be_taken_back_ends(stage: Stage, clock: Clock, spoil: Spoil) -> None:
    session_id = unread_turn(stage)
    turn = stage.begin(session_id)
    spoil("UPDATE turn SET quote = '[7]'")
    for _ in range(MOST_FAILURES):
        clock.advance(400)
        rescuing.rescue()
    assert stage.get(Turn, turn.id).status == "failed"
    assert stage.get(Session, session_id).status == "idle"
    stage.check(session_id)


def test_a_running_call_that_cannot_be_taken_back_gets_an_unknown_outcome_as_its_result(
    stage: Stage, clock: Clock, spoil: Spoil
) -> None:
    session_id = stage.session(bash="always_allow", max_turns=9)
    tool_call = stage.begin_call(stage.propose(session_id, call()))
    spoil("DELETE FROM call_input")
    for _ in range(MOST_FAILURES):
        clock.advance(400)
        rescuing.rescue()
    assert stage.get(ToolCall, tool_call.id).status == "done"
    assert "its outcome is unknown" in stage.get(CallResult, tool_call.id).content[0]["text"]
    assert stage.get(Attempt, tool_call.id, 1).outcome == "done"
    stage.reply(session_id, say("I see."))
    stage.check(session_id)


def test_a_turn_whose_claim_times_out_again_and_again_ends_after_an_hour(
    stage: Stage, clock: Clock, database_urls: DatabaseUrls
) -> None:
    session_id = unread_turn(stage)
    with refusing(database_urls.admin, "turn", "NEW.status = 'running'", code="57014"):
        for _ in range(12):
            run_turn(stage, session_id)
            assert stage.read(session_id).status == "running", "a time-out is transient"
            clock.advance(300)
        run_turn(stage, session_id)
    assert stage.read(session_id).status == "idle"
    assert "all tries of 3600 s failed" in stage.events(session_id, "session.error")[-1].body["error"]["message"]


def test_time_outs_with_hours_between_them_end_nothing(stage: Stage, clock: Clock, database_urls: DatabaseUrls) -> None:
    session_id = unread_turn(stage)
    with refusing(database_urls.admin, "turn", "NEW.status = 'running'", code="57014"):
        for _ in range(3):
            run_turn(stage, session_id)
            clock.advance(3000)
    assert stage.begin(session_id)
