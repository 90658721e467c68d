"""A sweep may die before and after a repair. The next sweep does what was left undone, and nothing twice."""

import json
from decimal import Decimal

import pytest
from crashes.boundaries import of
from crashes.journey import EFFECT, Journey
from rows.stage import say

from models.database import transactions
from models.database.transactions import transaction
from models.errors import Invalid
from models.flow.carry_on.halts import resume
from models.flow.spend import limits
from models.session.approval.row import Approval
from models.settings import settings
from models.workspace.halt import Halt
from models.workspace.spend_limit import SpendLimit

SWEEPS = {
    "dispatch_turns": "dispatch",
    "dispatch_calls": "dispatch",
    "rescue_turn": "rescue",
    "rescue_call": "rescue",
    "expire_due": "expire_approvals",
    "expire_calls": "expire_calls",
    "release_waiting": "release_granted",
    "swept": "release_granted",
    "remind_due": "remind_approvers",
    "resume": "end_halts",
    "settled": "end_halts",
    "resume_at_limit": "resume_at_limits",
}
"""The sweep that each verb is part of."""


@pytest.mark.parametrize("boundary", of("dispatch_turns"))
def test_a_lost_hint_of_a_turn_is_sent_again(journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn's hint is lost, and the sweep that finds the turn dies."""
    journey.begin()
    with monkeypatch.context() as lost:
        lost.setattr(transactions, "_send", lambda _: None)
        journey.say("say Done.")
    crash_in_sweep(journey, boundary)
    journey.until_idle()


@pytest.mark.parametrize("boundary", of("dispatch_calls"))
def test_a_lost_hint_of_a_call_is_sent_again(journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint after a decision is lost, and the sweep that finds the call dies."""
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    approval = journey.until_asked()
    with monkeypatch.context() as lost:
        lost.setattr(transactions, "_send", lambda _: None)
        journey.stage.decide(approval, result="allow")
    crash_in_sweep(journey, boundary)
    journey.until_idle()
    assert journey.effects() == 1


@pytest.mark.parametrize("boundary", of("rescue_turn"))
def test_a_rescue_of_a_turn_may_die_too(journey: Journey, boundary: str) -> None:
    """The turn's worker dies, then the sweep that queues the turn again."""
    journey.armed.at("model.after")
    journey.begin().say("say Done.")
    journey.until_crashed()
    crash_in_sweep(journey, boundary)
    seen = journey.until_idle()
    # A worker that claims the turn before the clock moves loses its lease, and the turn is taken back once more.
    assert seen.turns[0].losses in {1, 2}
    assert seen.turns[0].attempt == seen.turns[0].losses + 1


@pytest.mark.parametrize("boundary", of("rescue_call"))
def test_a_rescue_of_a_call_may_die_too(journey: Journey, boundary: str) -> None:
    """The call's worker dies, then the sweep that asks a person about the call."""
    journey.armed.at("effect.after")
    journey.begin(bash="always_allow").say(EFFECT, "then", "say Done.")
    journey.until_crashed()
    crash_in_sweep(journey, boundary)
    journey.settle_unknown()
    seen = journey.until_idle()
    assert journey.effects() == 1
    assert len(seen.approvals) == 1


@pytest.mark.parametrize("boundary", of("expire_due"))
def test_an_expiry_may_die_too(journey: Journey, boundary: str) -> None:
    """The call expires once, never runs, and the model is told."""
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    journey.until_asked()
    journey.clock.advance(settings().approval_seconds)
    crash_in_sweep(journey, boundary)
    seen = journey.until_idle()
    assert [a.status for a in seen.approvals] == ["expired"]
    assert journey.effects() == 0


@pytest.mark.parametrize("boundary", of("expire_calls"))
def test_giving_up_on_a_client_may_die_too(journey: Journey, boundary: str) -> None:
    """The client's call expires once, the model is told, and a late result is refused."""
    journey.begin(custom=("lookup",))
    journey.stage.change_agent(journey.session_id, lambda agent: agent["tools"][-1].update(result_timeout_seconds=60))
    journey.say('call lookup {"n": 1}', "then", "say Done.")
    journey.until(lambda seen: seen.session.status == "waiting")
    journey.clock.advance(61)
    crash_in_sweep(journey, boundary)
    seen = journey.until_idle()
    assert (seen.call("lookup").status, len(seen.turns)) == ("expired", 2)
    assert [row.action for row in seen.audit].count("tool_call.expired") == 1
    late = {"type": "user.custom_tool_result", "custom_tool_use_id": seen.call("lookup").id, "content": [say("42")]}
    with pytest.raises(Invalid, match="it is expired already"):
        journey.stage.send(journey.session_id, late)


@pytest.mark.parametrize("boundary", of("release_waiting"))
def test_a_release_by_a_grant_may_die_too(journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grant's hint is lost, and the sweep that finds it dies. The call is allowed once, and its use counted once."""
    one, other = (f"call write {json.dumps({'file_path': name, 'content': 'effect'})}" for name in ("effects", "other"))
    journey.begin(write="always_ask").say(one, other, "then", "say Done.")
    approval = journey.until_asked()
    with monkeypatch.context() as lost:
        lost.setattr(transactions, "_send", lambda _: None)
        journey.stage.decide(approval, result="allow", scope="session")
    crash_in_sweep(journey, boundary)
    seen = journey.until_idle()
    assert [call.status for call in seen.calls] == ["done", "done"]
    assert [grant.uses for grant in seen.grants] == [1]


@pytest.mark.parametrize("boundary", of("swept"))
def test_a_sweep_that_is_done_with_a_grant_may_die_too(journey: Journey, boundary: str) -> None:
    """The next sweep does what was left undone."""
    journey.begin(bash="always_ask").say(EFFECT, "then", EFFECT, "then", "say Done.")
    journey.decide(result="allow", scope="session")
    journey.until_idle()
    journey.clock.advance(61)
    crash_in_sweep(journey, boundary)
    journey.until(lambda seen: all(grant.swept_at for grant in seen.grants))
    assert journey.effects() == 2


@pytest.mark.parametrize("boundary", of("remind_due"))
def test_a_reminder_may_die_too(journey: Journey, boundary: str) -> None:
    """People are reminded once."""
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    journey.until_asked()
    journey.clock.advance(301)
    crash_in_sweep(journey, boundary)
    journey.until(lambda seen: seen.of("approval.reminded"))
    journey.decide(result="allow")
    seen = journey.until_idle()
    assert len(seen.of("approval.reminded")) == 1


@pytest.mark.parametrize("boundary", [*of("resume"), *of("settled")])
def test_an_end_of_a_halt_may_die_too(journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline moves once, by the whole halt, and the held call reaches its client once."""
    journey.begin(bash="always_ask", custom=("lookup",)).say(EFFECT, 'call lookup {"n": 1}', "then", "say Done.")
    approval = journey.until_asked()
    before = approval.expires_at
    with transaction(journey.stage.workspace_id) as db:
        halt = Halt.start(db, journey.stage.principal, None)
    journey.clock.advance(100)
    with monkeypatch.context() as lost:
        lost.setattr(transactions, "_send", lambda _: None)
        with transaction(journey.stage.workspace_id) as db:
            ended = Halt.end(db, journey.stage.principal)
    assert ended
    if boundary in of("settled"):
        # A whole sweep may settle the halt, too. A session that is locked is not resumed.
        while journey.stage.get(Approval, approval.id).expires_at == before:
            resume(journey.stage.workspace_id, journey.session_id)
    crash_in_sweep(journey, boundary)
    journey.until(lambda _seen: journey.stage.get(Halt, halt.id).settled_at is not None)
    assert journey.stage.get(Approval, approval.id).expires_at - before == ended.length


@pytest.mark.parametrize("boundary", of("resume_at_limit"))
def test_going_on_below_a_spend_limit_may_die_too(journey: Journey, boundary: str) -> None:
    """The question is withdrawn once, and the turn runs."""
    stage = journey.stage
    with transaction(stage.workspace_id) as db:
        limit = limits.set_limit(db, stage.principal, ("workspace", stage.workspace_id), "monthly", Decimal(0))
    journey.begin(model="claude-opus-5-5").say("say Done.")
    journey.until(lambda seen: seen.session.status == "waiting")
    with transaction(stage.workspace_id) as db:
        SpendLimit.remove(db, stage.principal, limit.id)
    crash_in_sweep(journey, boundary)
    seen = journey.until_idle()
    assert [approval.status for approval in seen.approvals] == ["cancelled"]
    assert [turn.status for turn in seen.turns] == ["failed", "done"]


def crash_in_sweep(journey: Journey, boundary: str) -> None:
    """Have a worker run the boundary's sweep, and die there. From then on the beat beats here."""
    verb = boundary.partition(".")[0]
    if SWEEPS[verb] == "dispatch":
        journey.clock.advance(6)
    journey.kill_at(boundary, f"sweep.{SWEEPS[verb]}")
    journey.until_crashed()
