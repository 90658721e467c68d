"""Whether a deadline has passed is decided in one place, which knows of halts. Every door asks there."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from people import Somebody, member
from rows.stage import Stage
from rows.voting import ask

from api.v1.approvals.bulk import NoneDecided, decide_all
from api.v1.approvals.requests import BulkDecision
from models.database import clock as database_clock
from models.database import ids
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.decide import links
from models.flow.decide.deadlines import transact_in_time
from models.flow.decide.decisions import decide
from models.flow.judge.grants import release_waiting
from models.flow.lock import lock
from models.notices import link
from models.notices.link import Link
from models.session.approval import deadline as approval_deadline
from models.session.approval.deadline import OVERDUE, DeadlinePassed, overdue
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt, have_passed, passed_sql

MINUTES = st.integers(-60, 60)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bounds=st.lists(st.integers(-60, -1), unique=True, max_size=5), deadlines=st.lists(st.tuples(MINUTES, MINUTES), min_size=1))
def test_sql_and_python_agree_whatever_halts_there_were(
    clean_database: None, bounds: list[int], deadlines: list[tuple[int, int]]
) -> None:
    """`bounds`: the minutes at which halts began and ended by turns. With an odd number the last one is open."""
    stage = Stage()
    with transaction(stage.workspace_id) as db:
        now = database_clock.now(db)
        begun = sorted(bounds)
        for at in range(0, len(begun), 2):
            started, ended = begun[at], begun[at + 1] if at + 1 < len(begun) else None
            db.insert(_halt(stage, now + timedelta(minutes=started), None if ended is None else now + timedelta(minutes=ended)))
        pairs = [(now + timedelta(minutes=at), now + timedelta(minutes=min(at, since))) for at, since in deadlines]
        late_of_each = f"""
            SELECT {passed_sql("due.at", "due.since")}
            FROM unnest(%(ats)s, %(sinces)s) WITH ORDINALITY due (at, since, n) ORDER BY n
        """
        rows = db.rows(late_of_each, ats=[at for at, _ in pairs], sinces=[since for _, since in pairs])
        assert [late for (late,) in rows] == have_passed(db, pairs, now)


def _halt(stage: Stage, started: datetime, ended: datetime | None) -> Halt:
    by = str(stage.principal)
    return Halt(
        id=ids.new("halt"),
        workspace_id=stage.workspace_id,
        reason=None,
        started_at=started,
        started_by=by,
        ended_at=ended,
        ended_by=by,
    )


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage)


@pytest.fixture
def approval(stage: Stage, anna: Somebody, clock: Any) -> Approval:
    """An approval whose deadline of a minute would have passed, but for a halt that ended. No sweep has run since."""
    waiting = ask(stage, stage.session(approval={"timeout_seconds": 60}))
    with transaction(stage.workspace_id) as db:
        link.issue(db, waiting, anna.person_id)
        Halt.start(db, stage.principal, None)
    clock.advance(3600)
    with transaction(stage.workspace_id) as db:
        Halt.end(db, stage.principal)
    return waiting


def test_a_deadline_stands_still_during_a_halt_for_every_door(stage: Stage, approval: Approval) -> None:
    with transaction(stage.workspace_id) as db:
        now = database_clock.now(db)
        row = db.get_one(Approval, approval.id)
        assert row.expires_at < now, "no sweep has moved it yet"
        assert overdue(db, [row], now) == []
        assert db.value(f"SELECT count(*) FROM approval WHERE {OVERDUE}") == 0
        [sent] = db.find(Link)
    state = stage.locked(approval.session_id, lambda locked: links.state(locked.db, locked.session, row, sent, locked.now))
    assert state == "open"
    assert stage.expire(approval.session_id) == 0
    stage.confirm(approval.session_id, approval.tool_call_id)
    assert stage.get(Approval, approval.id).status == "allowed"


def test_an_approval_can_be_given_more_time_after_a_halt(stage: Stage, approval: Approval, clock: Any) -> None:
    def extend(locked: Locked) -> None:
        approval_deadline.extend(locked, locked.db.get_one(Approval, approval.id), 600)

    stage.locked(approval.session_id, extend)
    clock.advance(590)
    assert stage.expire(approval.session_id) == 0
    clock.advance(20)
    with pytest.raises(DeadlinePassed):
        stage.locked(approval.session_id, extend)


def test_more_time_in_a_halt_is_never_less_than_what_is_left(stage: Stage, anna: Somebody, clock: Any) -> None:
    approval = ask(stage, stage.session(approval={"timeout_seconds": 600}))
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    clock.advance(3600)

    def extend(seconds: float) -> None:
        def verb(locked: Locked) -> None:
            approval_deadline.extend(locked, locked.db.get_one(Approval, approval.id), seconds)

        stage.locked(approval.session_id, verb)

    with pytest.raises(Conflict, match="later already"):
        extend(300)
    extend(900)
    with transaction(stage.workspace_id) as db:
        Halt.end(db, stage.principal)
    clock.advance(890)
    assert stage.expire(approval.session_id) == 0


def test_a_grant_releases_a_call_whose_deadline_stood_still(stage: Stage, approval: Approval) -> None:
    other = stage.session(of_agent=stage.read(approval.session_id).agent_id)
    stage.confirm(other, stage.propose(other).id, scope="always")
    assert release_waiting(stage.workspace_id, approval.session_id) == 1
    assert stage.get(ToolCall, approval.tool_call_id).status == "queued"


def test_a_late_decision_is_told_what_the_deadline_did(stage: Stage, clock: Any) -> None:
    session_id = stage.session(approval={"timeout_seconds": 60})
    late = ask(stage, session_id)
    clock.advance(61)

    def alone(db: Db) -> None:
        decide(lock(db, session_id, stage.principal), db.get_one(Approval, late.id, lock=True), Decision("allow"))

    with pytest.raises(Conflict) as refusal:
        transact_in_time(stage.workspace_id, alone)
    assert stage.get(ToolCall, late.tool_call_id).status == "expired", "no sweep has run"
    assert refusal.value.winner
    assert refusal.value.winner["decided_by"] == "system:sweep.expire_approvals"


def test_a_late_decision_among_others_is_told_what_the_deadline_did(stage: Stage, clock: Any) -> None:
    late = ask(stage, stage.session(approval={"timeout_seconds": 60}))
    clock.advance(61)
    other = ask(stage, stage.session())
    items = [BulkDecision(approval_id=each.id, result="allow") for each in (other, late)]
    with pytest.raises(NoneDecided) as refusal:
        transact_in_time(stage.workspace_id, lambda db: decide_all(db, stage.principal, items))
    assert stage.get(ToolCall, late.tool_call_id).status == "expired", "no sweep has run"
    assert stage.get(ToolCall, other.tool_call_id).status == "asked"
    cause = refusal.value.__cause__
    assert isinstance(cause, Conflict)
    assert (cause.winner or {})["status"] == "expired"
