"""Under concurrency no grant has more uses than allowed, and no call begins by a revoked grant."""

from functools import partial

import psycopg
import pytest
from crashes.invariants import check_invariants
from races.races_together import of_kind, together
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.flow.judge.grants import release_waiting
from models.session.approval.grant import Grant
from models.session.approval.grant_use import uses_of
from models.session.tool_call.row import ToolCall


def standing(stage: Stage, uses: int | None = None) -> Grant:
    """A standing grant for bash."""
    session = stage.session()
    stage.propose(session)
    stage.decide(stage.approvals(session)[0], result="allow", scope="always", max_uses=uses)
    with transaction(stage.workspace_id) as db:
        return db.find(Grant)[0]


def ready(stage: Stage, grant: Grant, count: int) -> list[str]:
    """Sessions of the grant's agent with a queued turn."""
    sessions = [stage.session(of_agent=grant.agent_id) for _ in range(count)]
    for session in sessions:
        stage.message(session)
    return sessions


def test_ten_sessions_at_once_use_a_grant_for_three_calls_three_times(stage: Stage) -> None:
    grant = standing(stage, uses=3)
    sessions = ready(stage, grant, 10)
    outcomes = together(*(partial(stage.reply, session, call()) for session in sessions))
    assert not of_kind(outcomes, Exception)
    assert sorted(calls[0].status for calls in outcomes) == ["asked"] * 7 + ["queued"] * 3
    assert stage.get(Grant, grant.id).uses == 3
    for session in sessions:
        stage.check(session)


def test_turns_and_the_sweep_share_the_uses_of_a_grant(stage: Stage) -> None:
    """Waiting calls and new calls together do not exceed the grant's uses."""
    grant = standing(stage, uses=4)
    with transaction(stage.workspace_id) as db:
        Grant.find(db, grant.id).revoked_at = grant.created_at
    waiting = ready(stage, grant, 5)
    for session in waiting:
        stage.reply(session, call())
    with transaction(stage.workspace_id) as db:
        Grant.find(db, grant.id).revoked_at = None
    fresh = ready(stage, grant, 5)
    outcomes = together(
        *(partial(release_waiting, stage.workspace_id, session) for session in waiting),
        *(partial(stage.reply, session, call()) for session in fresh),
    )
    assert not of_kind(outcomes, Exception)
    with transaction(stage.workspace_id) as db:
        allowed = db.find(ToolCall, "WHERE session_id = ANY(%(sessions)s) AND status <> 'asked'", sessions=waiting + fresh)
    assert len(allowed) == stage.get(Grant, grant.id).uses == 4


def test_turns_that_use_two_grants_in_opposite_order_do_not_block_each_other(stage: Stage) -> None:
    """Grants are locked in one order."""
    grant = standing(stage, uses=1000)
    [session] = ready(stage, grant, 1)
    with transaction(stage.workspace_id) as db:
        Grant.find(db, grant.id).match = "bash(ls *)"
    stage.reply(session, call(command="wc"))
    stage.decide(stage.approvals(session)[0], result="allow", scope="always", match="bash(wc *)")
    for _ in range(3):
        sessions = ready(stage, grant, 6)
        orders = [("ls", "wc"), ("wc", "ls")] * 3
        outcomes = together(
            *(partial(stage.reply, one, *(call(command=c) for c in order)) for one, order in zip(sessions, orders, strict=True))
        )
        assert not of_kind(outcomes, Exception)
        assert {c.status for calls in outcomes for c in calls} == {"queued"}


def test_sessions_that_use_a_standing_grant_do_not_wait_for_each_other(stage: Stage) -> None:
    grant = standing(stage)
    first, second = ready(stage, grant, 2)
    with transaction(stage.workspace_id) as db:
        assert Grant.to_use(db, stage.thread(first), {"bash"}), "one transaction holds the grant"
        [tool_call] = stage.reply(second, call())
        assert stage.begin_call(tool_call), "another one uses it, and claims the call"
    with transaction(stage.workspace_id) as db:
        assert uses_of(db, [grant.id])[grant.id].calls == 1


def test_a_grant_is_not_revoked_in_the_midst_of_its_use(stage: Stage) -> None:
    grant = standing(stage)
    [session] = ready(stage, grant, 1)
    with transaction(stage.workspace_id) as db:
        assert Grant.to_use(db, stage.thread(session), {"bash"})
        with transaction(stage.workspace_id) as other:
            other.write("SET LOCAL lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                Grant.find(other, grant.id).revoke(other, stage.principal)
            other.roll_back()


@pytest.mark.parametrize("_round", range(6))
def test_a_claim_at_the_same_moment_as_a_revocation_runs_the_call_or_asks(stage: Stage, _round: int) -> None:
    grant = standing(stage)
    [session] = ready(stage, grant, 1)
    [tool_call] = stage.reply(session, call())

    together(stage.revoke_grants, partial(stage.claim_call, tool_call))
    assert stage.get(ToolCall, tool_call.id).status in {"running", "asked"}
    check_invariants(stage.workspace_id, session)
