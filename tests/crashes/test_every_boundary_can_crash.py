"""A process may die before and after every commit, model call, effect and publish: the session still reaches its right end."""

import json

import pytest
from crashes.boundaries import BOUNDARIES
from crashes.effects import SERVERS, Ledger, call
from crashes.journey import EFFECT, Journey, approval_seconds, bash, send_task

from models import db

OF_TURNS = [b for b in BOUNDARIES if b.split(".")[0] in {"claim_turn", "model", "checkpoint"}]
OF_CALLS = [b for b in BOUNDARIES if b.split(".")[0] in {"claim_call", "effect", "finish_call"}]

AROUND_EFFECTS = ["effect.before", "effect.after", "finish_call.before_commit"]


def of(verb: str) -> list[str]:
    """A verb's boundaries."""
    return [b for b in BOUNDARIES if b.startswith(f"{verb}.")]


@pytest.mark.parametrize("boundary", OF_TURNS)
def test_a_first_turn_survives(journey: Journey, boundary: str) -> None:
    """I1 I7: a fresh start goes on wherever its worker died."""
    journey.armed.at(boundary)
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    journey.until_crashed()
    journey.decide(result="allow")
    seen = journey.until_idle()
    assert [t.status for t in seen.turns] == ["done", "done"]
    assert journey.effects() == 1


@pytest.mark.parametrize("boundary", OF_TURNS)
def test_a_turn_after_a_decision_survives(journey: Journey, boundary: str) -> None:
    """I1 I7: a resume is the same path as a fresh start."""
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    approval = journey.until_asked()
    journey.armed.at(boundary)
    journey.stage.decide(approval, result="allow")
    journey.until_crashed()
    seen = journey.until_idle()
    assert [t.status for t in seen.turns] == ["done", "done"]
    assert journey.effects() == 1


@pytest.mark.parametrize("boundary", OF_CALLS)
def test_an_effect_that_must_not_be_doubled_is_not(journey: Journey, boundary: str) -> None:
    """I2, faults 2 and 3: once the attempt was written, a person looks what became of it."""
    journey.armed.at(boundary)
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    journey.decide(result="allow")
    journey.until_crashed()
    if boundary in {"claim_call.before_commit", "finish_call.after_commit", "finish_call.after_publish"}:
        attempts = 1
    else:
        happened = boundary in {"effect.after", "finish_call.before_commit"}
        assert journey.until_asked("unknown_outcome").kind == "unknown_outcome"
        assert journey.effects() == happened, "nobody has run it again unasked"
        journey.settle_unknown()
        attempts = 1 if happened else 2
    seen = journey.until_idle()
    assert journey.effects() == 1
    assert len(seen.attempts) == attempts


@pytest.mark.parametrize("boundary", OF_CALLS)
def test_an_idempotent_effect_goes_again_by_itself(journey: Journey, boundary: str) -> None:
    """I3, faults 2 and 3: the same key, the same input, and no person is asked."""
    journey.armed.at(boundary)
    journey.begin(write="always_allow").say('call write {"file_path": "effects", "content": "effect"}', "then", "say Done.")
    journey.until_crashed()
    seen = journey.until_idle()
    assert not seen.approvals
    assert seen.call("write").result[0]["text"].split()[0] in {"created", "replaced"}
    assert journey.effects() == 1
    untouched = {"claim_call.before_commit", "finish_call.after_commit", "finish_call.after_publish"}
    assert len(seen.attempts) == (1 if boundary in untouched else 2)


@pytest.mark.parametrize("boundary", AROUND_EFFECTS)
def test_a_toolset_s_effect_that_must_not_be_doubled_is_not(journey: Journey, ledger: Ledger, boundary: str) -> None:
    """I2, faults 2 and 3: the same for a function that a team wrote."""
    journey.armed.at(boundary)
    journey.begin(servers=SERVERS, till="always_ask").say(call("charge"), "then", "say Done.")
    journey.decide(result="allow")
    journey.until_crashed()
    happened = boundary != "effect.before"
    journey.until_asked("unknown_outcome")
    assert ledger.effects(journey.session_id) == happened, "nobody has run it again unasked"
    journey.settle_unknown(happened=happened)
    seen = journey.until_idle()
    assert ledger.effects(journey.session_id) == 1
    assert len(seen.attempts) == (1 if happened else 2)


@pytest.mark.parametrize("boundary", AROUND_EFFECTS)
def test_a_toolset_s_idempotent_effect_goes_again_by_itself(journey: Journey, ledger: Ledger, boundary: str) -> None:
    """I3, faults 2 and 3: the same key and the same input reach the function."""
    journey.armed.at(boundary)
    journey.begin(servers=SERVERS, till="always_allow").say(call("put"), "then", "say Done.")
    journey.until_crashed()
    seen = journey.until_idle()
    assert not seen.approvals
    assert len(seen.attempts) == 2
    (key,) = {run.key for run in ledger.runs(journey.session_id)}
    assert key == seen.calls[0].id
    assert ledger.runs(journey.session_id)[-1].attempt == 2
    assert ledger.effects(journey.session_id) == 1


@pytest.mark.parametrize("boundary", of("tell"))
def test_what_a_tool_has_printed_is_told_if_it_was_kept(journey: Journey, ledger: Ledger, boundary: str) -> None:
    """I2: its worker dies while it keeps that; a person is told as much as was kept."""
    journey.armed.at(boundary)
    journey.begin(servers=SERVERS, till="always_allow").say(call("charge", "wait after"), "then", "say Done.")
    journey.until_crashed()
    unknown = journey.until_asked("unknown_outcome")
    assert unknown.attempt_told
    assert bool(unknown.attempt_told["output"]) == (boundary != "tell.before_commit")
    journey.settle_unknown(happened=bool(ledger.effects(journey.session_id)))
    journey.until_idle()
    assert ledger.effects(journey.session_id) == 1


@pytest.mark.parametrize("boundary", of("fail_turn"))
def test_a_model_error_is_survived_and_tried_again(journey: Journey, boundary: str) -> None:
    """I1: the worker that was told of an overload dies with the news."""
    journey.armed.at(boundary)
    journey.begin().say("fail 529 1 times", "say Done.")
    journey.until_crashed()
    seen = journey.until_idle()
    assert seen.session.stop_reason == {"type": "end_turn"}
    assert seen.turns[0].attempt == 2


@pytest.mark.parametrize("boundary", of("lose_call"))
def test_a_call_without_proof_of_its_end_is_put_to_a_person(journey: Journey, boundary: str) -> None:
    """I2: its keeper is killed after the effect, and then the worker that says so."""
    journey.armed.at(boundary)
    journey.begin(bash="always_allow").say(bash("echo effect >> effects; kill -9 $PPID; sleep 60"), "then", "say Done.")
    journey.until_crashed()
    journey.settle_unknown()
    seen = journey.until_idle()
    assert journey.effects() == 1
    assert len(seen.attempts) == 1


@pytest.mark.parametrize("boundary", of("dispatch_turns"))
def test_a_lost_hint_of_a_turn_is_sent_again(journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """I1, fault 4: nobody heard of the turn, and the sweep that found it dies."""
    journey.begin()
    with monkeypatch.context() as lost:
        lost.setattr(db, "_send", lambda _: None)
        journey.say("say Done.")
    crash_in_sweep(journey, boundary)
    journey.until_idle()


@pytest.mark.parametrize("boundary", of("dispatch_calls"))
def test_a_lost_hint_of_a_call_is_sent_again(journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """I1 I2, fault 4: nobody heard of the decision, and the sweep that found it dies."""
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    approval = journey.until_asked()
    with monkeypatch.context() as lost:
        lost.setattr(db, "_send", lambda _: None)
        journey.stage.decide(approval, result="allow")
    crash_in_sweep(journey, boundary)
    journey.until_idle()
    assert journey.effects() == 1


@pytest.mark.parametrize("boundary", of("rescue_turn"))
def test_a_rescue_of_a_turn_may_die_too(journey: Journey, boundary: str) -> None:
    """I1 I7: the turn's worker dies, then the sweep that takes it back."""
    journey.armed.at("model.after")
    journey.begin().say("say Done.")
    journey.until_crashed()
    crash_in_sweep(journey, boundary)
    seen = journey.until_idle()
    # Who claims it before the clock is moved on loses his lease by that, and it is taken back once more.
    assert seen.turns[0].losses in {1, 2}
    assert seen.turns[0].attempt == seen.turns[0].losses + 1


@pytest.mark.parametrize("boundary", of("rescue_call"))
def test_a_rescue_of_a_call_may_die_too(journey: Journey, boundary: str) -> None:
    """I2: the tool's worker dies, then the sweep that puts it to a person."""
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
    """I1 I6: the call expires once, never runs, and the model is told."""
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    journey.until_asked()
    journey.clock.advance(approval_seconds())
    crash_in_sweep(journey, boundary)
    seen = journey.until_idle()
    assert [a.status for a in seen.approvals] == ["expired"]
    assert journey.effects() == 0


@pytest.mark.parametrize("boundary", of("release_waiting"))
def test_a_release_by_a_grant_may_die_too(journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """I1 I6: nobody heard of the grant, and the sweep that found it dies; the call is allowed once, its use is counted once."""
    one, other = (f"call write {json.dumps({'file_path': name, 'content': 'effect'})}" for name in ("effects", "other"))
    journey.begin(write="always_ask").say(one, other, "then", "say Done.")
    approval = journey.until_asked()
    with monkeypatch.context() as lost:
        lost.setattr(db, "_send", lambda _: None)
        journey.stage.decide(approval, result="allow", scope="session")
    crash_in_sweep(journey, boundary)
    seen = journey.until_idle()
    assert [call.status for call in seen.calls] == ["done", "done"]
    assert [grant.uses for grant in seen.grants] == [1]


@pytest.mark.parametrize("boundary", of("swept"))
def test_a_sweep_that_is_done_with_a_grant_may_die_too(journey: Journey, boundary: str) -> None:
    """I1: whatever it leaves undone, the next one does."""
    journey.begin(bash="always_ask").say(EFFECT, "then", EFFECT, "then", "say Done.")
    journey.decide(result="allow", scope="session")
    journey.until_idle()
    journey.clock.advance(61)
    crash_in_sweep(journey, boundary)
    journey.until(lambda seen: all(grant.swept_at for grant in seen.grants))
    assert journey.effects() == 2


@pytest.mark.parametrize("boundary", of("remind_due"))
def test_a_reminder_may_die_too(journey: Journey, boundary: str) -> None:
    """R15: said once, whoever dies of it."""
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    journey.until_asked()
    journey.clock.advance(301)
    crash_in_sweep(journey, boundary)
    journey.until(lambda seen: seen.of("approval.reminded"))
    journey.decide(result="allow")
    seen = journey.until_idle()
    assert len(seen.of("approval.reminded")) == 1


def crash_in_sweep(journey: Journey, boundary: str) -> None:
    """Have a worker sweep until it dies at the boundary; from then on the beat beats here."""
    at_home, sent = journey.sweep, []

    def elsewhere() -> None:
        if not sent:
            for name in ("rescue", "expire_approvals", "remind_approvers", "release_granted", "dispatch"):
                send_task(f"sweep.{name}")
            sent.append(True)

    journey.armed.at(boundary)
    journey.sweep, journey.beats = elsewhere, True
    if boundary.startswith("dispatch"):
        journey.clock.advance(6)
    journey.until_crashed()
    journey.sweep = at_home


def test_every_boundary_is_met() -> None:
    """The table and the tests above are about the same boundaries, with those of test_a_door_can_crash and of the work's doors."""
    others = ("fail_turn", "lose_call", "dispatch_turns", "dispatch_calls", "rescue_turn", "rescue_call", "expire_due", "receive")
    others += ("release_waiting", "swept", "remind_due", "tell")
    work = ("offer_work", "acknowledge_work", "renew_work", "stop_work")
    tested = OF_TURNS + OF_CALLS + [boundary for verb in (*others, *work) for boundary in of(verb)]
    assert sorted(tested) == sorted(BOUNDARIES)
