"""Before a request would pass its model's window, long results of old turns are cut, then old turns are folded into a summary."""

from collections.abc import Callable
from typing import Any

import pytest
from rows.stage import QUOTE, Stage, call, say

from models import flow
from models.database.rows import Db
from models.pure.charges import Charge
from models.pure.usage import Usage
from models.session.fold import Fold
from models.session.session import Session
from models.session.turn import Served, Turn
from workers.offer import Offer

WINDOW = 4_000
"""Tokens, so that 12,000 characters of input are the most."""
SUMMARY = {"type": "summary", "text": "They talked.", "provider_data": {"anthropic": {"compaction": {"type": "compaction"}}}}


@pytest.fixture(autouse=True)
def small_window(setting: Callable[[str, str], None]) -> None:
    """Models have a small window."""
    setting("context_window_tokens", str(WINDOW))


def offer(stage: Stage, session_id: str) -> tuple[Turn, Offer]:
    """Claim the session's turn as a worker does."""

    def verb(db: Db, session: Session) -> tuple[Turn | None, Offer]:
        made = Offer(db, session)
        return flow.claim_turn(db, session, session.turn_id or "", "worker", made.quote), made

    turn, made = stage.locked(session_id, verb)
    assert turn, "there is a turn to claim"
    return turn, made


def fold(stage: Stage, turn: Turn, what: flow.Folding, charge: Charge = QUOTE) -> None:
    """Store the summary that the model wrote."""
    served = Served("anthropic", "stand-in")

    def verb(db: Db, session: Session) -> None:
        held = Turn.held(db, turn.id, turn.fence)
        flow.fold(db, session, held, what, summary=SUMMARY, charges=[charge], served=served)

    stage.locked(turn.session_id, verb)


def talk(stage: Stage, session_id: str, *numbers: int, characters: int = 1_900, charge: Charge | None = None) -> None:
    """Have turns with a message and a reply, each of about so many characters in all."""
    for number in numbers:
        stage.message(session_id, f"Message {number}: " + "m" * (characters // 2))
        stage.reply(session_id, say(f"Reply {number}: " + "r" * (characters // 2)), charge=charge or UNREPORTED)


UNREPORTED = Charge("anthropic", "stand-in", None, Usage())
"""A provider that counts nothing, so that lengths are estimated from the text."""


def texts(messages: list[dict[str, Any]]) -> str:
    """All texts of messages, with the marks of summaries."""
    return " ".join(str(block.get("text") or block.get("content")) for message in messages for block in message["content"])


def folds(stage: Stage, session_id: str) -> list[Fold]:
    """The session's folds, the oldest first."""
    return stage.locked(session_id, lambda db, _: db.find(Fold, "WHERE session_id = %(id)s ORDER BY through, kind", id=session_id))


def test_a_history_that_fits_is_sent_whole(stage: Stage) -> None:
    session_id = stage.session()
    talk(stage, session_id, 1, 2, 3)
    stage.message(session_id, "And now?")
    _, made = offer(stage, session_id)
    assert made.folding is None
    assert made.messages == stage.history(session_id)
    assert folds(stage, session_id) == []


def test_whole_turns_are_folded_and_the_newest_stay(stage: Stage) -> None:
    session_id = stage.session()
    talk(stage, session_id, *range(1, 8))
    stage.message(session_id, "And now?")
    turn, made = offer(stage, session_id)
    assert made.folding
    assert (made.folding.through, made.folding.messages[0]["role"], made.folding.messages[-1]["role"]) == (5, "user", "assistant")
    assert "Reply 5" in texts(made.folding.messages)
    assert "Message 6" not in texts(made.folding.messages)
    fold(stage, turn, made.folding)
    [summary, *rest] = stage.history(session_id)
    assert (summary["role"], summary["content"][0]) == ("user", SUMMARY)
    assert "Reply 5" not in texts([summary, *rest])
    assert "Message 6" in texts([summary, *rest])
    again, made = offer(stage, session_id)
    assert (again.id, again.attempt, again.folds, made.folding) == (turn.id, 2, 1, None)
    stage.reply(session_id, say("Now."), turn=again)
    stage.check(session_id)


def test_a_later_summary_replaces_the_earlier_one(stage: Stage) -> None:
    session_id = stage.session()
    talk(stage, session_id, *range(1, 8))
    stage.message(session_id)
    turn, made = offer(stage, session_id)
    assert made.folding
    fold(stage, turn, made.folding)
    stage.reply(session_id, say("On."), charge=UNREPORTED)
    talk(stage, session_id, *range(9, 13))
    stage.message(session_id)
    _, made = offer(stage, session_id)
    assert made.folding
    assert made.folding.messages[0]["content"][0] == SUMMARY
    assert made.folding.through > folds(stage, session_id)[0].through


def test_calls_are_never_split_from_their_results_and_what_waits_stays_whole(stage: Stage) -> None:
    """In a run of many calls too, whose only message is the oldest part."""
    session_id = stage.session(max_turns=50, bash="always_allow")
    stage.message(session_id)
    for number in range(8):
        [made_call] = stage.reply(session_id, say(f"Step {number}."), call(), charge=UNREPORTED)
        stage.run_call(made_call, f"Output {number}: " + "o" * 1_800)
    turn, made = offer(stage, session_id)
    assert made.folding
    fold(stage, turn, made.folding)
    for messages in (made.folding.messages, stage.history(session_id)):
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
        [made_call] = stage.reply(session_id, call(), charge=UNREPORTED)
        stage.run_call(made_call, output)
    _, made = offer(stage, session_id)
    assert made.folding is None
    [fold_row] = folds(stage, session_id)
    assert (fold_row.kind, fold_row.through, fold_row.summary) == ("results", 2, None)
    first, second, waiting = (b["content"] for m in made.messages for b in m["content"] if b["type"] == "tool_result")
    assert len(first[0]["text"]) == 2_000
    assert "7000 more characters left out" in first[1]["text"]
    assert (second[0]["text"], waiting[0]["text"]) == ("b" * 400, "c" * 3_000)
    assert made.messages == stage.history(session_id)


def test_reading_the_session_is_unchanged_and_says_that_it_was_compacted(stage: Stage) -> None:
    session_id = stage.session()
    talk(stage, session_id, *range(1, 8))
    stage.message(session_id)
    before = [(event.id, event.body) for event in stage.events(session_id) if event.type.endswith(".message")]
    turn, made = offer(stage, session_id)
    assert made.folding
    fold(stage, turn, made.folding)
    assert [(event.id, event.body) for event in stage.events(session_id) if event.type.endswith(".message")] == before
    *_, start, end, compacted = stage.events(session_id)
    assert (start.type, end.type) == ("span.model_request_start", "span.model_request_end")
    assert (compacted.type, compacted.body) == ("agent.thread_context_compacted", {})
    assert stage.read(session_id).status == "running"


def test_the_request_for_a_summary_is_counted_and_is_within_the_budget(stage: Stage) -> None:
    session_id = stage.session()
    talk(stage, session_id, *range(1, 8))
    stage.message(session_id)
    before = stage.read(session_id).usage["requests"]
    turn, made = offer(stage, session_id)
    assert made.folding
    fold(stage, turn, made.folding, Charge("anthropic", "stand-in", None, Usage(700, 70)))
    usage = stage.read(session_id).usage
    assert (usage["requests"], usage["input_tokens"], usage["output_tokens"]) == (before + 1, 700, 70)


def test_a_summary_takes_none_of_a_turn_s_attempts(stage: Stage, setting: Callable[[str, str], None]) -> None:
    setting("model_attempts", "2")
    session_id = stage.session()
    talk(stage, session_id, *range(1, 8))
    stage.message(session_id)
    turn, made = offer(stage, session_id)
    assert made.folding
    fold(stage, turn, made.folding)
    again, _ = offer(stage, session_id)
    stage.fail(again)
    assert stage.get(Turn, turn.id).status == "queued", "one attempt is left"


def test_a_refused_request_is_folded_whatever_the_estimate_says_and_costs_no_attempt(
    stage: Stage, setting: Callable[[str, str], None]
) -> None:
    """Even where long results can be cut: nobody knows whether that would be enough."""
    setting("context_window_tokens", "100000")
    setting("model_attempts", "2")
    session_id = stage.session(max_turns=50, bash="always_allow")
    stage.message(session_id)
    for output in ("a" * 9_000, "b" * 400):
        [made_call] = stage.reply(session_id, call(), charge=UNREPORTED)
        stage.run_call(made_call, output)
    turn, made = offer(stage, session_id)
    assert made.folding is None
    stage.fail(turn, retryable=False, shorten=True)
    turn, made = offer(stage, session_id)
    assert made.folding
    fold(stage, turn, made.folding)
    turn, made = offer(stage, session_id)
    assert (made.folding, turn.overlong_after, turn.folds, turn.attempt) == (None, 0, 1, 3)
    stage.fail(turn)
    assert stage.get(Turn, turn.id).status == "queued", "one attempt is left"


def test_a_worker_that_was_too_late_stores_no_summary(stage: Stage) -> None:
    session_id = stage.session()
    talk(stage, session_id, *range(1, 8))
    stage.message(session_id)
    turn, made = offer(stage, session_id)
    assert made.folding
    stage.send(session_id, {"type": "user.interrupt"})
    with pytest.raises(Exception, match="turn"):
        fold(stage, turn, made.folding)
    assert folds(stage, session_id) == []


def test_a_session_that_is_deleted_takes_its_folds_along(stage: Stage) -> None:
    session_id = stage.session()
    talk(stage, session_id, *range(1, 8))
    stage.message(session_id)
    turn, made = offer(stage, session_id)
    assert made.folding
    fold(stage, turn, made.folding)
    stage.reply(session_id, say("Bye."))
    stage.locked(session_id, lambda db, session: flow.delete(db, session, stage.principal))
