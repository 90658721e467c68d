"""Of many decisions at once one is kept, and every caller learns which."""

import random
import time
from functools import partial

from crashes.invariants import check_invariants
from races.races_together import of_kind, together
from rows.stage import Stage, call

from models.errors import Conflict
from models.session.approval.deadline import DeadlinePassed
from models.session.approval.row import Approval


def asked(stage: Stage, calls: int = 1, **policies: object) -> list[Approval]:
    """The approvals of a new session whose model proposes so many calls."""
    session_id = stage.session(**policies)
    stage.message(session_id)
    stage.reply(session_id, *(call() for _ in range(calls)))
    return stage.approvals(session_id)


def test_allow_and_deny_from_fifty_threads_have_one_winner(stage: Stage) -> None:
    """Equal decisions get the winner's result, and all others a conflict that names the winner."""
    (approval,) = asked(stage)
    decisions = [{"result": result} for result in ("allow", "deny")] * 25
    outcomes = together(*(partial(stage.decide, approval, **one) for one in decisions))
    seen = check_invariants(stage.workspace_id, approval.session_id)
    (kept,) = seen.approvals
    for one, outcome in zip(decisions, outcomes, strict=True):
        if one == kept.decision:
            assert outcome == kept.event_id
        else:
            assert isinstance(outcome, Conflict)
            assert outcome.winner["decision"] == kept.decision
    assert len(seen.of("user.tool_confirmation")) == 1
    assert seen.calls[0].status == {"allowed": "queued", "denied": "denied"}[kept.status]


def test_the_same_decision_by_both_routes_at_once_is_one_decision(stage: Stage) -> None:
    """As an event of the session, and at the approval."""
    (approval,) = asked(stage)
    by_call = partial(stage.confirm, approval.session_id, approval.tool_call_id)
    by_approval = partial(stage.decide, approval, result="allow")
    outcomes = together(*[by_call, by_approval] * 10)
    events = {getattr(outcome, "id", outcome) for outcome in outcomes}
    seen = check_invariants(stage.workspace_id, approval.session_id)
    assert events == {seen.approvals[0].event_id}
    assert sum(row.action == "approval.decided" for row in seen.audit) == 1


def test_an_allow_at_the_deadline_is_kept_or_late_and_never_both(stage: Stage) -> None:
    """In fifty rounds."""
    dice = random.Random(25)
    ways = set()
    for _ in range(50):
        (approval,) = asked(stage, approval={"timeout_seconds": 0.02}, bash="always_ask")

        def allow(approval: Approval = approval, early: float = dice.uniform(-0.002, 0.012)) -> str:
            time.sleep(max(0.0, approval.expires_at.timestamp() - early - time.time()))
            return stage.decide(approval, result="allow")

        def expire(approval: Approval = approval) -> int:
            time.sleep(max(0.0, approval.expires_at.timestamp() - 0.003 - time.time()))
            while not (expired := stage.expire(approval.session_id)) and time.time() < approval.expires_at.timestamp():
                pass
            return expired

        kept, expired = together(allow, expire)
        expired += stage.expire(approval.session_id)  # a sweep skips a locked session, and finds it the next time
        seen = check_invariants(stage.workspace_id, approval.session_id)
        way = seen.approvals[0].status
        if way == "allowed":
            assert (kept, expired) == (seen.approvals[0].event_id, 0)
            assert seen.calls[0].status == "queued"
        else:
            assert way == "expired"
            assert isinstance(kept, Conflict)
            assert seen.calls[0].status == "expired"
        ways.add(way if not isinstance(kept, DeadlinePassed) else "late")
    assert ways & {"expired", "late"}


def test_decisions_on_two_calls_start_the_next_turn_once(stage: Stage) -> None:
    for _ in range(12):
        approvals = asked(stage, calls=2)
        outcomes = together(*(partial(stage.decide, one, result="deny") for one in approvals))
        assert not of_kind(outcomes, Exception)
        seen = check_invariants(stage.workspace_id, approvals[0].session_id)
        assert [t.status for t in seen.turns] == ["done", "queued"]
        assert seen.session.status == "running"


def test_results_of_two_calls_start_the_next_turn_once(stage: Stage) -> None:
    """And the model gets the results in the order of the calls."""
    for _ in range(12):
        session_id = stage.session(bash="always_allow")
        stage.message(session_id)
        calls = stage.reply(session_id, call(command="first"), call(command="second"))
        held = [stage.claim_call(one) for one in calls]
        outcomes = together(*(partial(stage.finish_call, one, one.id) for one in reversed(held)))
        assert not of_kind(outcomes, Exception)
        seen = check_invariants(stage.workspace_id, session_id)
        assert [t.status for t in seen.turns] == ["done", "queued"]
        assert [r["content"][0]["text"] for r in seen.messages[-1]["content"]] == [one.id for one in calls]
