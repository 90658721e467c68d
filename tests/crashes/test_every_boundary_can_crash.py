"""A process may die before and after every commit, model call, effect and publish: the session still reaches its right end."""

import pytest
from crashes.boundaries import BOUNDARIES, of
from crashes.effects import SERVERS, Ledger, call
from crashes.journey import EFFECT, Journey, bash

OF_TURNS = [b for b in BOUNDARIES if b.split(".")[0] in {"claim_turn", "model", "checkpoint"}]
OF_CALLS = [b for b in BOUNDARIES if b.split(".")[0] in {"claim_call", "effect", "finish_call"}]

AROUND_MODEL = ["model.before", "model.after"]
AROUND_EFFECTS = ["effect.before", "effect.after", "finish_call.before_commit"]


@pytest.mark.parametrize(
    ("model", "boundary"), [("stand-in", boundary) for boundary in OF_TURNS] + [("llama-4", boundary) for boundary in AROUND_MODEL]
)
def test_a_first_turn_and_a_turn_after_a_decision_survive(journey: Journey, model: str, boundary: str) -> None:
    """A session goes on wherever its worker died, and its worker after that. The wires of both kinds of providers are used."""
    journey.armed.at(boundary)
    journey.begin(model=model, bash="always_ask").say(EFFECT, "then", "say Done.")
    journey.until_crashed()
    approval = journey.until_asked()
    journey.armed.at(boundary)
    journey.stage.decide(approval, result="allow")
    journey.until_crashed()
    seen = journey.until_idle()
    assert [t.status for t in seen.turns] == ["done", "done"]
    assert journey.effects() == 1


@pytest.mark.parametrize("boundary", OF_CALLS)
def test_an_effect_that_must_not_be_doubled_is_not(journey: Journey, boundary: str) -> None:
    """Once the attempt is stored, a person settles the outcome."""
    journey.armed.at(boundary)
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    journey.decide(result="allow")
    journey.until_crashed()
    if boundary in {"claim_call.before_commit", "finish_call.after_commit", "finish_call.after_publish"}:
        attempts = 1
    else:
        happened = boundary in {"effect.after", "finish_call.before_commit"}
        assert journey.until_asked("unknown_outcome").kind == "unknown_outcome"
        assert journey.effects() == happened, "the call does not run again without a decision"
        journey.settle_unknown()
        attempts = 1 if happened else 2
    seen = journey.until_idle()
    assert journey.effects() == 1
    assert len(seen.attempts) == attempts


@pytest.mark.parametrize("boundary", OF_CALLS)
def test_an_idempotent_effect_runs_again_by_itself(journey: Journey, boundary: str) -> None:
    """The same key, the same input, and no person is asked."""
    journey.armed.at(boundary)
    journey.begin(write="always_allow").say('call write {"file_path": "effects", "content": "effect"}', "then", "say Done.")
    journey.until_crashed()
    seen = journey.until_idle()
    assert not seen.approvals
    assert seen.results[seen.call("write").id][0]["text"].split()[0] in {"created", "replaced"}
    assert journey.effects() == 1
    untouched = {"claim_call.before_commit", "finish_call.after_commit", "finish_call.after_publish"}
    assert len(seen.attempts) == (1 if boundary in untouched else 2)


@pytest.mark.parametrize("boundary", AROUND_EFFECTS)
def test_a_toolset_s_effect_that_must_not_be_doubled_is_not(journey: Journey, ledger: Ledger, boundary: str) -> None:
    """The same for a function of a toolset."""
    journey.armed.at(boundary)
    journey.begin(servers=SERVERS, till="always_ask").say(call("charge"), "then", "say Done.")
    journey.decide(result="allow")
    journey.until_crashed()
    happened = boundary != "effect.before"
    journey.until_asked("unknown_outcome")
    assert ledger.effects(journey.session_id) == happened, "the call does not run again without a decision"
    journey.settle_unknown(happened=happened)
    seen = journey.until_idle()
    assert ledger.effects(journey.session_id) == 1
    assert len(seen.attempts) == (1 if happened else 2)


@pytest.mark.parametrize("boundary", AROUND_EFFECTS)
def test_a_toolset_s_idempotent_effect_runs_again_by_itself(journey: Journey, ledger: Ledger, boundary: str) -> None:
    """The same key and the same input reach the function."""
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
def test_a_person_sees_the_output_that_was_stored(journey: Journey, ledger: Ledger, boundary: str) -> None:
    """The worker dies while it stores a tool's output."""
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
    """The worker that got an overload error dies around its commit."""
    journey.armed.at(boundary)
    journey.begin().say("fail 529 1 times", "say Done.")
    journey.until_crashed()
    seen = journey.until_idle()
    assert seen.session.stop_reason == {"type": "end_turn"}
    assert seen.turns[0].attempt == 2


@pytest.mark.parametrize("boundary", [*of("fold"), "model.after"])
def test_a_summary_of_old_turns_is_stored_once(journey: Journey, boundary: str) -> None:
    """The worker dies around the summary's commit, or before. The turn goes on, from one summary."""
    journey.begin(model="small-1")
    for number in range(2):
        journey.say("the sea was far " * 800, f"say {number}")
        journey.until_idle()
    journey.armed.at(boundary)
    journey.say("the sea was far " * 800, "say Done.")
    journey.until_crashed()
    seen = journey.until_idle()
    assert seen.session.stop_reason == {"type": "end_turn"}
    assert [event.body["content"][0]["text"] for event in seen.of("agent.message")] == ["0", "1", "Done."]
    assert len(seen.of("agent.thread_context_compacted")) == 1
    assert (seen.messages[0]["content"][0]["type"], seen.turns[-1].folds) == ("summary", 1)


@pytest.mark.parametrize("boundary", of("fail_turn"))
def test_a_request_that_was_too_long_is_shortened_once(journey: Journey, boundary: str) -> None:
    """The worker that got the error dies around its commit. The turn goes on, from one summary."""
    journey.begin(model="small-window-5200").say("the sea was far " * 800, "say First.")
    journey.until_idle()
    journey.armed.at(boundary)
    journey.say("the sea was far " * 800, "say Done.")
    journey.until_crashed()
    seen = journey.until_idle()
    assert [event.body["content"][0]["text"] for event in seen.of("agent.message")] == ["First.", "Done."]
    assert (seen.turns[-1].overlong_after, seen.turns[-1].folds, len(seen.of("agent.thread_context_compacted"))) == (0, 1, 1)


@pytest.mark.parametrize("boundary", of("correct_usage"))
def test_an_attempt_that_was_ended_is_counted_once(journey: Journey, boundary: str) -> None:
    """A person ends the run while the model answers, and the worker dies while it replaces the estimate of the cost."""
    journey.armed.at(boundary)
    journey.begin().say("delay 0.5s", "say First.")
    journey.until(lambda seen: seen.turns[0].status == "running")
    journey.interrupt()
    assert [usage.estimated for usage in journey.look().usages] == [True]
    journey.until_crashed()
    journey.say("say Done.")
    assert [(usage.turn_id, usage.attempt) for usage in journey.until_idle().usages] == [
        (turn.id, 1) for turn in journey.look().turns
    ]


@pytest.mark.parametrize("boundary", of("lose_call"))
def test_a_call_without_proof_of_its_end_is_put_to_a_person(journey: Journey, boundary: str) -> None:
    """The shell's keeper is killed after the effect, and then the worker that records the loss."""
    journey.armed.at(boundary)
    journey.begin(bash="always_allow").say(bash("echo effect >> effects; kill -9 $PPID; sleep 60"), "then", "say Done.")
    journey.until_crashed()
    journey.settle_unknown()
    seen = journey.until_idle()
    assert journey.effects() == 1
    assert len(seen.attempts) == 1


@pytest.mark.parametrize("boundary", of("look"))
def test_a_crash_of_a_look_at_the_files_costs_only_the_evidence(journey: Journey, boundary: str) -> None:
    """People see less, and the call that they allow runs."""
    journey.armed.at(boundary)
    effect = bash("echo effect >> effects", working_directory=".")  # only a worker knows this directory
    journey.begin(bash="always_ask").say(effect, "then", "say Done.")
    journey.until_crashed()
    journey.decide(result="allow")
    journey.until_idle()
    assert journey.effects() == 1


def test_every_boundary_has_a_test() -> None:
    """The boundaries of the table are those of the tests here and in the other files of this folder."""
    others = ("fail_turn", "lose_call", "dispatch_turns", "dispatch_calls", "rescue_turn", "rescue_call", "expire_due", "receive")
    others += ("expire_calls", "release_waiting", "swept", "remind_due", "tell", "announce", "keep_listing", "mark_stale")
    others += (
        "offer_work",
        "renew_work",
        "respond",
        "seal",
        "cut",
        "delete_old",
        "delete_archived",
        "remove_batch",
        "resume",
        "settled",
        "look",
        "correct_usage",
    )
    others += ("fold", "resume_at_limit", "begin_part", "store_content", "take_place", "remove_part")
    tested = OF_TURNS + OF_CALLS + [boundary for verb in others for boundary in of(verb)]
    assert sorted(tested) == sorted(BOUNDARIES)
