"""Sessions that share a spend limit exceed it by no more than one reply together. Then people decide about each session."""

from datetime import timedelta
from typing import Any

import pytest
from people import member
from rows.spending import COSTS_10, QUOTE, REACHED, begin, limit, spend_10
from rows.stage import Stage, say

from models.database import clock as database_clock
from models.database.transactions import transaction
from models.errors import Invalid
from models.flow.spend import budgets, limits
from models.operate import due
from models.session.spending import standing as spend_standing
from models.session.turn.row import Turn
from models.workspace.spend_limit import SpendLimit
from workers.sweeps import resuming


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """A stage whose requests have a price: $1 for the input, at most $10 for the reply."""
    stage.quote = QUOTE
    return stage


def test_one_session_s_cost_stops_another_session(stage: Stage) -> None:
    limit(stage, "10.99")
    spend_10(stage)
    session = begin(stage)
    assert stage.claim(session) is None
    row, [approval] = stage.read(session), stage.approvals(session)
    assert (row.status, row.stop_reason) == ("waiting", REACHED)
    assert (approval.kind, approval.tool) == ("budget", "session.spend_limit")
    reached = "The workspace's monthly limit of $10.99 is reached: $10.00 are spent."
    assert approval.prompt == f"Let this session spend $11.00 more? {reached}"
    assert stage.events(session)[-1].body == {"stop_reason": REACHED}
    stage.check(session)


def test_an_allow_lets_one_session_spend_an_amount_more(stage: Stage) -> None:
    limit(stage, "5")
    spend_10(stage)
    one, other = begin(stage), begin(stage)
    assert stage.claim(one) is None
    assert stage.claim(other) is None
    [approval] = stage.approvals(one)
    stage.decide(approval, result="allow", updated_input={"amount": "1100", "currency": "USD"})
    stage.reply(one, say("That was $10."), charge=COSTS_10)
    assert stage.read(one).stop_reason == {"type": "end_turn"}
    stage.message(one)
    assert stage.claim(one) is None, "$10 of its $11 are spent, and the input costs $1"
    assert [approval.status for approval in stage.approvals(one)] == ["allowed", "pending"]
    assert stage.read(other).status == "waiting"
    stage.check(one)


def test_a_denial_leaves_the_session_at_rest(stage: Stage) -> None:
    limit(stage, "5")
    spend_10(stage)
    session = begin(stage)
    assert stage.claim(session) is None
    [approval] = stage.approvals(session)
    stage.decide(approval, result="deny")
    assert (stage.read(session).status, stage.read(session).stop_reason) == ("idle", REACHED)
    stage.check(session)


@pytest.mark.parametrize("scope", ["agent", "user"])
def test_a_limit_of_an_agent_or_a_person_stops_only_their_sessions(stage: Stage, scope: str) -> None:
    person = member(stage).person_id
    mine = spend_10(stage, on_behalf_of=f"user:{person}")
    agent = stage.read(mine).agent_id
    limit(stage, "5", (scope, {"agent": agent, "user": person}[scope]))
    stopped = begin(stage, of_agent=agent, on_behalf_of=f"user:{person}")
    assert stage.claim(stopped) is None
    assert stage.claim(begin(stage)), "of another agent, for nobody"


def test_a_request_waits_for_others_under_way_that_could_reach_the_limit(stage: Stage) -> None:
    limit(stage, "12")
    first, second = begin(stage), begin(stage)
    turn = stage.begin(first)
    assert stage.claim(second) is None
    waiting = stage.get(Turn, stage.thread(second).turn_id)
    assert (waiting.status, waiting.hinted_at, stage.read(second).status) == ("queued", None, "running")
    with transaction(stage.workspace_id) as db:
        assert timedelta(0) < waiting.due_at - database_clock.now(db) <= timedelta(seconds=budgets.AGAIN_SECONDS)
    stage.check(second)
    stage.reply(first, say("That was $10."), charge=COSTS_10, turn=turn)
    stage.locked(second, lambda locked: setattr(locked.db.get_one(Turn, waiting.id), "due_at", waiting.created_at))
    assert stage.claim(second), "$10 are spent, and its input costs $1"


@pytest.mark.parametrize("change", ["raise", "delete", "month"])
def test_sessions_go_on_when_the_limit_has_room_again(stage: Stage, clock: Any, change: str) -> None:
    row = limit(stage, "5")
    spend_10(stage)
    session = begin(stage)
    assert stage.claim(session) is None
    resuming.resume_at_limits()
    assert stage.read(session).status == "waiting", "there is no room yet"
    if change == "raise":
        limit(stage, "100")
    elif change == "delete":
        with transaction(stage.workspace_id) as db:
            SpendLimit.remove(db, stage.principal, row.id)
    else:
        clock.advance(31 * 86_400)
        assert due.workspaces_at_limits() == [stage.workspace_id]
    resuming.resume_at_limits()
    assert [approval.status for approval in stage.approvals(session)] == ["cancelled"]
    stage.reply(session, say("Done."), charge=COSTS_10)
    stage.check(session)


def test_one_sweep_resumes_all_sessions_in_batches(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(stage, "10")
    spend_10(stage)
    sessions = [begin(stage) for _ in range(5)]
    assert [stage.claim(session) for session in sessions] == [None] * 5
    limit(stage, "1000")
    monkeypatch.setattr(limits, "BATCH", 2)
    resuming.resume_at_limits()
    assert [stage.read(session).status for session in sessions] == ["running"] * 5


def test_a_request_without_a_price_does_not_begin_under_a_limit(stage: Stage) -> None:
    limit(stage, "100")
    session = stage.session()  # the stand-in has no price
    stage.message(session)
    assert stage.claim(session) is None
    assert (stage.read(session).status, stage.read(session).stop_reason, stage.approvals(session)) == ("idle", REACHED, [])


def test_each_period_counts_its_own_days(stage: Stage) -> None:
    spend_10(stage)
    for period in ("daily", "weekly", "monthly"):
        limit(stage, "50", period=period)
    limit(stage, None, period="daily")
    with transaction(stage.workspace_id) as db:
        standings = spend_standing.of_workspace(db)
    assert [(one.limit.period, one.limit.amount, one.spent) for one in standings] == [
        ("daily", None, 10),
        ("monthly", 50, 10),
        ("weekly", 50, 10),
    ]
    assert stage.claim(begin(stage)), "a limit of null stops nothing"


def test_the_scope_of_a_limit_must_be_in_the_workspace(stage: Stage) -> None:
    for scope in (("workspace", "wrkspc_other"), ("agent", "agent_other"), ("user", "user_other")):
        with pytest.raises(Invalid, match=f"scope.{scope[0]}_id"):
            limit(stage, "5", scope)
