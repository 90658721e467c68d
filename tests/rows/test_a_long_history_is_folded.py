"""A request that would exceed its model's window is shortened: long old results are cut, then old turns become a summary."""

from collections.abc import Callable
from typing import Any

import pytest
from own_database import Clock
from rows.folding import SUMMARY, UNREPORTED, WINDOW, fold, folds, offer, talk
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.flow.begin import sessions
from models.flow.run.folds import Folding
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import Usage
from models.session.turn.fold import Fold
from models.session.turn.row import Turn


@pytest.fixture(autouse=True)
def small_window(setting: Callable[[str, str], None]) -> None:
    """Models have a small window."""
    setting("context_window_tokens", str(WINDOW))


def must_fold(stage: Stage) -> tuple[str, Turn, Folding]:
    """A session whose next request must be preceded by a summary: its id, the claimed turn, and what is to be folded."""
    session_id = stage.session()
    talk(stage, session_id, *range(1, 8))
    stage.message(session_id, "And now?")
    turn, request = offer(stage, session_id)
    assert request.folding
    return session_id, turn, request.folding


def texts(messages: list[dict[str, Any]]) -> str:
    """All texts of messages."""
    return " ".join(str(block.get("text") or block.get("content")) for message in messages for block in message["content"])


def test_a_history_that_fits_is_sent_whole(stage: Stage) -> None:
    session_id = stage.session()
    talk(stage, session_id, 1, 2, 3)
    stage.message(session_id, "And now?")
    _, request = offer(stage, session_id)
    assert request.folding is None
    assert request.messages == stage.history(session_id)
    assert folds(stage, session_id) == []


def test_whole_turns_are_folded_and_the_newest_stay(stage: Stage) -> None:
    session_id, turn, folding = must_fold(stage)
    assert (folding.through, folding.messages[0]["role"], folding.messages[-1]["role"]) == (5, "user", "assistant")
    assert "Reply 5" in texts(folding.messages)
    assert "Message 6" not in texts(folding.messages)
    fold(stage, turn, folding)
    [summary, *rest] = stage.history(session_id)
    assert (summary["role"], summary["content"][0]) == ("user", SUMMARY)
    assert "Reply 5" not in texts([summary, *rest])
    assert "Message 6" in texts([summary, *rest])
    again, request = offer(stage, session_id)
    assert (again.id, again.attempt, again.folds, request.folding) == (turn.id, 2, 1, None)
    stage.reply(session_id, say("Now."), turn=again)
    stage.check(session_id)


def test_a_later_summary_replaces_the_earlier_one(stage: Stage) -> None:
    session_id, turn, folding = must_fold(stage)
    fold(stage, turn, folding)
    stage.reply(session_id, say("On."), charge=UNREPORTED)
    talk(stage, session_id, *range(9, 13))
    stage.message(session_id)
    _, request = offer(stage, session_id)
    assert request.folding
    assert request.folding.messages[0]["content"][0] == SUMMARY
    assert request.folding.through > folds(stage, session_id)[0].through


def test_calls_are_never_split_from_their_results_and_what_waits_stays_whole(stage: Stage) -> None:
    """Even in a run of many calls, whose only message is the oldest part."""
    session_id = stage.session(max_turns=50, bash="always_allow")
    stage.message(session_id)
    for number in range(8):
        [tool_call] = stage.reply(session_id, say(f"Step {number}."), call(), charge=UNREPORTED)
        stage.run_call(tool_call, f"Output {number}: " + "o" * 1_800)
    turn, request = offer(stage, session_id)
    assert request.folding
    fold(stage, turn, request.folding)
    for messages in (request.folding.messages, stage.history(session_id)):
        calls = [b["id"] for m in messages for b in m["content"] if b["type"] == "tool_use"]
        results = [b["tool_use_id"] for m in messages for b in m["content"] if b["type"] == "tool_result"]
        assert calls == results
    waiting = stage.history(session_id)[-1]["content"][-1]
    assert waiting["content"][0]["text"] == "Output 7: " + "o" * 1_800
    stage.reply(session_id, say("Done."))
    stage.check(session_id)


def test_old_long_results_are_cut_before_anything_is_folded(stage: Stage) -> None:
    session_id = stage.session(max_turns=50, bash="always_allow")
    stage.message(session_id)
    for output in ("a" * 9_000, "b" * 400, "c" * 3_000):
        [tool_call] = stage.reply(session_id, call(), charge=UNREPORTED)
        stage.run_call(tool_call, output)
    _, request = offer(stage, session_id)
    assert request.folding is None
    [fold_row] = folds(stage, session_id)
    assert (fold_row.kind, fold_row.through, fold_row.summary) == ("results", 2, None)
    first, second, waiting = (b["content"] for m in request.messages for b in m["content"] if b["type"] == "tool_result")
    assert len(first[0]["text"]) == 2_000
    assert "7000 more characters left out" in first[1]["text"]
    assert (second[0]["text"], waiting[0]["text"]) == ("b" * 400, "c" * 3_000)
    assert request.messages == stage.history(session_id)


def test_a_summary_that_fails_again_and_again_cuts_old_results_once(stage: Stage, clock: Clock) -> None:
    """Also a result of so many blocks that their JSON alone is long."""
    session_id = stage.session(max_turns=50, bash="always_allow")
    stage.message(session_id)
    for number in range(9):
        [tool_call] = stage.reply(session_id, say(f"Step {number}." + "x" * 1_500), call(), charge=UNREPORTED)
        more = {} if number else {"content": [say(f"hit {hit}: " + "w" * 120) for hit in range(60)]}
        stage.finish_call(stage.begin_call(tool_call), f"Output {number}", **more)
    cut_through = []
    for _ in range(4):
        turn, request = offer(stage, session_id)
        assert request.folding
        cut_through.append([row.through for row in folds(stage, session_id)])
        stage.fail(turn)
        clock.advance(100)
    assert cut_through == [cut_through[0]] * 4
    assert len(cut_through[0]) == 1
    stage.send(session_id, {"type": "user.interrupt"})
    stage.check(session_id)


def test_reading_the_session_is_unchanged_and_says_that_it_was_compacted(stage: Stage) -> None:
    session_id, turn, folding = must_fold(stage)
    before = [(event.id, event.body) for event in stage.events(session_id) if event.type.endswith(".message")]
    fold(stage, turn, folding)
    assert [(event.id, event.body) for event in stage.events(session_id) if event.type.endswith(".message")] == before
    *_, start, end, compacted = stage.events(session_id)
    assert (start.type, end.type) == ("span.model_request_start", "span.model_request_end")
    assert (compacted.type, compacted.body) == ("agent.thread_context_compacted", {})
    assert stage.read(session_id).status == "running"


def test_the_request_for_a_summary_is_counted(stage: Stage) -> None:
    session_id, turn, folding = must_fold(stage)
    before = stage.read(session_id).usage["requests"]
    fold(stage, turn, folding, Charge("anthropic", "stand-in", None, Usage(700, 70)))
    usage = stage.read(session_id).usage
    assert (usage["requests"], usage["input_tokens"], usage["output_tokens"]) == (before + 1, 700, 70)


def test_a_summary_takes_none_of_a_turn_s_attempts(stage: Stage, setting: Callable[[str, str], None]) -> None:
    setting("model_attempts", "2")
    session_id, turn, folding = must_fold(stage)
    fold(stage, turn, folding)
    again, _ = offer(stage, session_id)
    stage.fail(again)
    assert stage.get(Turn, turn.id).status == "queued", "one attempt is left"


def test_a_refused_request_is_folded_whatever_the_estimate_says_and_costs_no_attempt(
    stage: Stage, setting: Callable[[str, str], None]
) -> None:
    """Even where long results can be cut, because nobody knows whether cutting would be enough."""
    setting("context_window_tokens", "100000")
    setting("model_attempts", "2")
    session_id = stage.session(max_turns=50, bash="always_allow")
    stage.message(session_id)
    for output in ("a" * 9_000, "b" * 400):
        [tool_call] = stage.reply(session_id, call(), charge=UNREPORTED)
        stage.run_call(tool_call, output)
    turn, request = offer(stage, session_id)
    assert request.folding is None
    stage.fail(turn, retryable=False, shorten=True)
    turn, request = offer(stage, session_id)
    assert request.folding
    fold(stage, turn, request.folding)
    turn, request = offer(stage, session_id)
    assert (request.folding, turn.overlong_after, turn.folds, turn.attempt) == (None, 0, 1, 3)
    stage.fail(turn)
    assert stage.get(Turn, turn.id).status == "queued", "one attempt is left"


def test_a_worker_that_was_too_late_stores_no_summary(stage: Stage) -> None:
    session_id, turn, folding = must_fold(stage)
    stage.send(session_id, {"type": "user.interrupt"})
    with pytest.raises(Exception, match="turn"):
        fold(stage, turn, folding)
    assert folds(stage, session_id) == []


def test_a_session_that_is_deleted_takes_its_folds_along(stage: Stage) -> None:
    session_id, turn, folding = must_fold(stage)
    fold(stage, turn, folding)
    stage.reply(session_id, say("Bye."))
    stage.locked(session_id, sessions.delete)
    with transaction(stage.workspace_id) as db:
        assert db.find(Fold) == []
