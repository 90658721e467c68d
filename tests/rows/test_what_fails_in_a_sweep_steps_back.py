"""Rows that fail in a sweep are skipped with growing pauses, so that other rows are swept, and are retried later."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from own_database import Clock, DatabaseUrls
from psycopg import sql
from rows.stage import Stage, call

from models.database import failure
from models.database.failure import Failure
from models.database.transactions import transaction
from models.operate import due, readiness
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.workspace.halt import Halt
from workers.sweeps import deadlines as sweeps_of_deadlines
from workers.sweeps import deleting, rescuing, resuming

Row = Turn | ToolCall | Approval
FEW = 3


def asked(stage: Stage, session_id: str) -> Approval:
    """An approval whose deadline passes in a day."""
    stage.propose(session_id)
    return stage.approvals(session_id)[0]


def with_client(stage: Stage, session_id: str) -> ToolCall:
    """A call that the client runs."""
    return stage.propose(session_id, call("lookup", n=1))


def claimed_turn(stage: Stage, session_id: str) -> Turn:
    """A turn that a worker holds."""
    stage.message(session_id)
    return stage.begin(session_id)


def claimed_call(stage: Stage, session_id: str) -> ToolCall:
    """A call that a worker holds."""
    tool_call = stage.propose(session_id)
    stage.confirm(session_id, tool_call.id)
    return stage.begin_call(tool_call)


CASES: dict[str, tuple[Callable[[Stage, str], Row], Callable[[], None], float]] = {
    "deadlines": (asked, sweeps_of_deadlines.expire_approvals, 100_000),
    "reminders": (asked, sweeps_of_deadlines.remind_approvers, 400),
    "clients": (with_client, sweeps_of_deadlines.expire_calls, 100_000),
    "turns": (claimed_turn, rescuing.rescue, 100),
    "calls": (claimed_call, rescuing.rescue, 100),
}


@pytest.fixture
def broken(database_urls: DatabaseUrls, clean_database: object) -> Iterator[set[str]]:
    """Sessions whose events the database refuses, so that every sweep of them fails."""

    class Broken(set[str]):
        def add(self, session_id: str) -> None:
            db.execute("INSERT INTO broken VALUES (%s)", [session_id])
            super().add(session_id)

        def clear(self) -> None:
            db.execute("DELETE FROM broken")
            super().clear()

    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute("CREATE TABLE broken (id text PRIMARY KEY)")
        db.execute("""
            CREATE FUNCTION break_session() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$ BEGIN
                IF EXISTS (SELECT FROM public.broken WHERE id = NEW.session_id) THEN
                    RAISE 'broken' USING ERRCODE = 'data_exception';
                END IF;
                RETURN NEW;
            END $$
        """)
        db.execute("CREATE TRIGGER broken BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION break_session()")
        yield Broken()
        db.execute("DROP TRIGGER broken ON event; DROP FUNCTION break_session; DROP TABLE broken")


def sessions(stage: Stage, count: int) -> list[str]:
    """New sessions of one agent, in which calls of `bash` ask and the client has a tool."""
    first = stage.session(custom=("lookup",), bash="always_ask")
    return [first, *(stage.session(of_agent=stage.read(first).agent_id) for _ in range(count - 1))]


def state(stage: Stage, row: Row) -> tuple[Any, ...]:
    """The columns of a row that a sweep changes."""
    now = stage.get(type(row), row.id)
    return now.status, getattr(now, "reminded_at", None)


@pytest.mark.parametrize("case", CASES)
def test_rows_that_always_fail_do_not_starve_the_others(
    stage: Stage, clock: Clock, broken: set[str], monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    begin, sweep, seconds = CASES[case]
    monkeypatch.setattr(due, "BATCH", FEW)
    *bad, good = sessions(stage, 2 * FEW + 1)
    rows = [begin(stage, session_id) for session_id in (*bad, good)]  # the good one is the newest
    before = [state(stage, row) for row in rows]
    for session_id in bad:
        broken.add(session_id)
    clock.advance(seconds)
    for _ in range(3):
        sweep()
    after = [state(stage, row) for row in rows]
    assert after[:-1] == before[:-1]
    assert after[-1] != before[-1]
    broken.clear()
    clock.advance(failure.FIRST_SECONDS)
    for _ in range(3):
        sweep()
    assert not [row for row, old in zip(rows, before, strict=True) if state(stage, row) == old]


def test_a_whole_batch_of_rows_that_always_fail_does_not_starve_one(
    stage: Stage, clock: Clock, broken: set[str], database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is the only one of its session."""
    monkeypatch.setattr(due, "BATCH", 20)
    bad, good = sessions(stage, 2)
    first, last = asked(stage, bad), asked(stage, good)
    broken.add(bad)
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        for number in range(1, due.BATCH):
            copied = f"{bad}{number}"
            db.execute("INSERT INTO broken VALUES (%s)", [copied])
            copy(db, "session", bad, id=copied)
            copy(db, "turn", turn_of(stage, first), id=f"turn_{number}", session_id=copied)
            copy(db, "tool_call", first.tool_call_id or "", id=f"call_{number}", session_id=copied, turn_id=f"turn_{number}")
            copy(db, "approval", first.id, id=f"appr_{number}", session_id=copied, tool_call_id=f"call_{number}")
    clock.advance(100_000)
    sweeps_of_deadlines.expire_approvals()
    assert stage.get(Approval, last.id).status == "pending"
    sweeps_of_deadlines.expire_approvals()
    assert stage.get(Approval, last.id).status == "expired"
    with transaction(stage.workspace_id) as db:
        assert len(db.find(Failure, "")) == due.BATCH


def turn_of(stage: Stage, approval: Approval) -> str:
    """The turn of an approval's call."""
    return stage.get(ToolCall, approval.tool_call_id or "").turn_id


def copy(db: "psycopg.Connection[Any]", table: str, row_id: str, **other: str) -> None:
    """Insert a row again, with other ids."""
    text = sql.SQL("INSERT INTO {0} SELECT (jsonb_populate_record(old, CAST(%s AS jsonb))).* FROM {0} old WHERE id = %s")
    db.execute(text.format(sql.Identifier(table)), [psycopg.types.json.Jsonb(other), row_id])


def test_a_failure_is_counted_once_for_all_beats_and_pauses_grow(stage: Stage, clock: Clock) -> None:
    pauses = []
    for _ in range(8):
        for _ in range(3):  # beats
            failure.step_back("rescue", "sesn_1", stage.workspace_id, "ValueError")
        with transaction(stage.workspace_id) as db:
            row = db.get_one(Failure, "rescue", "sesn_1")
            left = db.value("SELECT extract(epoch FROM not_before - assent_now()) FROM failure")
        pauses.append((row.failures, round(float(left or 0))))
        clock.advance(float(left or 0) + 0.1)
    assert pauses == [(1, 5), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (8, 300)]


def test_sessions_that_fail_do_not_stop_the_release_of_others_by_a_grant(
    stage: Stage, clock: Clock, broken: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "BATCH", FEW)
    *waiting, giver = sessions(stage, 2 * FEW + 2)
    rows = [asked(stage, session_id) for session_id in waiting]
    stage.decide(asked(stage, giver), result="allow", scope="always")
    for session_id in waiting[:-1]:
        broken.add(session_id)
    for _ in range(4):
        resuming.release_granted()
    statuses = [stage.get(Approval, row.id).status for row in rows]
    assert statuses == ["pending"] * (len(rows) - 1) + ["allowed"]
    broken.clear()
    clock.advance(failure.FIRST_SECONDS)
    for _ in range(3):
        resuming.release_granted()
    assert {stage.get(Approval, row.id).status for row in rows} == {"allowed"}
    with transaction(stage.workspace_id) as db:
        assert len(db.find(Failure, "")) == 0


def test_a_failure_is_forgotten_once_its_subject_is_no_longer_due(stage: Stage, clock: Clock) -> None:
    failure.step_back("rescue", "sesn_1", stage.workspace_id, "ValueError")
    for ahead, left in ((60, 1), (failure.FORGOTTEN_AFTER_SECONDS, 0)):
        clock.advance(ahead)
        deleting.delete_old()
        with transaction(stage.workspace_id) as db:
            assert len(db.find(Failure, "")) == left


def test_a_failure_is_told_until_its_subject_would_have_failed_again(stage: Stage, clock: Clock) -> None:
    failure.step_back("rescue", "sesn_1", stage.workspace_id, "ValueError")
    clock.advance(600)
    assert readiness.failing(stage.workspace_id) == ["rescue failed at 1 row(s) lately (ValueError): the log names them"]
    clock.advance(400)
    assert readiness.failing(stage.workspace_id) == []


def test_a_session_that_fails_does_not_stop_the_others_after_a_halt(stage: Stage, clock: Clock, broken: set[str]) -> None:
    bad, *good = sessions(stage, 4)
    stage.message(bad)
    turn = stage.begin(bad)
    for session_id in good:
        stage.propose(session_id)
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    stage.reply(bad, call("lookup", n=1), call(), turn=turn)  # the client gets the call when the halt ends, with its event
    clock.advance(60)
    with transaction(stage.workspace_id) as db:
        halt = Halt.end(db, stage.principal)
    assert halt
    broken.add(bad)
    before = {session_id: stage.approvals(session_id)[0].expires_at for session_id in (bad, *good)}
    for _ in range(2):
        resuming.end_halts()
    moved = {session_id for session_id, at in before.items() if stage.approvals(session_id)[0].expires_at > at}
    assert moved == set(good)
    assert stage.get(Halt, halt.id).settled_at is None
    broken.clear()
    clock.advance(failure.FIRST_SECONDS)
    for _ in range(2):
        resuming.end_halts()
    assert stage.approvals(bad)[0].expires_at > before[bad]
    assert stage.get(Halt, halt.id).settled_at
