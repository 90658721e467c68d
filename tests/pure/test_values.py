"""The pure functions: values in, values out."""

import hashlib
import itertools
import json
import re
from collections.abc import Callable
from functools import reduce
from random import Random
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from models.flow.carry_on.next_move import Calls, Finish, after_reply, all_settled
from models.pure.backoff import backoff
from models.pure.json.canonical import canonical, canonical_text, digest, is_digest
from models.pure.json.storable import is_deep, storable
from models.pure.states import SETTLED, TOOL_CALL
from models.pure.text import words
from models.pure.text.visible import visible_lines

CALL = {"type": "tool_use", "id": "t", "name": "bash", "input": {}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_one_value_has_one_spelling(value: object) -> None:
    """In any order of its keys."""
    turned = dict(reversed(value.items())) if isinstance(value, dict) else value
    assert canonical(turned) == canonical(value)
    assert len(digest(value)) == 64


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.characters(max_codepoint=0x9F))
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(ANY_JSON)
def test_the_spelling_is_that_of_rfc_8785(value: object) -> None:
    """With either encoder."""
    assert canonical(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["\ue000", "\uffff", "z", "é"])
def test_names_beyond_the_first_plane_of_unicode_are_in_the_order_of_rfc_8785(name: str) -> None:
    """Which is the order of UTF-16, and not of code points."""
    value = {name: 1, "\U00010000": {name: 2, "\U0010ffff": 3}}
    assert canonical(value) == canonical(dict(reversed(value.items()))) == rfc8785.dumps(value)  # type: ignore[arg-type]


def test_a_deep_value_has_the_spelling_of_rfc_8785() -> None:
    value: object = 1
    for _ in range(500):
        value = {"a": value}
    assert canonical(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, -(2**53)])
def test_a_number_that_json_cannot_express_exactly_is_refused(value: float) -> None:
    """Because it could be hashed in two ways."""
    with pytest.raises(ValueError, match=r".+"):
        digest({"n": value})


@pytest.mark.parametrize("value", [{"n": 2**60, "a": [1]}, {"n": float("nan"), "a": 1}], ids=str)
def test_a_value_without_a_spelling_is_shown_as_json_and_has_no_hash(value: Any) -> None:
    """Only somebody with the database can write it. People see the value, and its call does not run."""
    assert canonical_text(value) == json.dumps(value, sort_keys=True)
    assert not is_digest(value, hashlib.sha256(canonical_text(value).encode()).hexdigest())


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "refusal", "stop_sequence", "model_context_window_exceeded"])
def test_no_call_of_a_cut_or_refused_reply_runs(reason: str) -> None:
    assert isinstance(after_reply(reason, [CALL], 1, 5), Finish)


def test_calls_run_only_below_the_turn_limit() -> None:
    assert after_reply("tool_use", [CALL], 4, 5) == Calls((CALL,))
    last = after_reply("tool_use", [CALL], 5, 5)
    assert isinstance(last, Finish)
    assert last.error
    assert last.error[0] == "tool_use_limit_reached_error"
    assert after_reply("tool_use", [], 1, 5) == Finish("end_turn")


@given(st.lists(st.sampled_from(sorted(TOOL_CALL))))
def test_the_next_turn_starts_when_all_calls_are_settled(statuses: list[str]) -> None:
    assert all_settled(statuses) == (set(statuses) <= SETTLED)


@given(st.integers(1, 40), st.integers(), st.none() | st.floats(0, 1e9))
def test_backoff_doubles_within_its_bounds_and_honours_retry_after(attempt: int, seed: int, retry_after: float | None) -> None:
    """The wait is half to all of the doubled pause, or `retry_after` up to an hour."""
    seconds = backoff(attempt, 1, 60, retry_after, Random(seed))
    pause = min(60, 2.0 ** (attempt - 1))
    assert max(pause / 2, min(retry_after or 0, 3600)) <= seconds <= max(pause, min(retry_after or 0, 3600))


def test_visible_lines_keep_line_ends_and_write_out_control_characters() -> None:
    assert visible_lines("a\x1b[2J\x00é\n") == "a<U+001B>[2J<U+0000>é\n"


def test_characters_that_postgres_cannot_store_are_replaced() -> None:
    """NUL and lone surrogates, anywhere in a value."""
    assert storable({"a\x00": ["\ud800x", 1, None, "é\n"]}) == {"a\ufffd": ["\ufffdx", 1, None, "é\n"]}
    assert storable("\ud7ff\udfff\ue000\U0010ffff") == "\ud7ff\ufffd\ue000\U0010ffff"


def nested(levels: int, within: Callable[[Any], Any] = lambda inside: [inside]) -> Any:
    """A 1 inside of so many levels."""
    return reduce(lambda inside, _: within(inside), range(levels), 1)


@pytest.mark.parametrize("within", [lambda inside: [inside], lambda inside: {"a": inside}], ids=["lists", "objects"])
def test_a_value_too_deep_for_its_readers_is_cut(within: Callable[[Any], Any]) -> None:
    deep = nested(10_000, within)
    assert is_deep(deep)
    assert not is_deep(storable(deep), 100)
    assert "\ufffd" in str(storable(deep))


def test_a_value_within_the_depth_limit_is_stored_unchanged() -> None:
    fits = {"a": nested(59), "b": "x"}
    assert not is_deep(fits)
    assert is_deep([fits])
    assert is_deep(["x", nested(60)])
    assert is_deep({"b": "x", "a": nested(60)})
    assert storable([[fits]]) == [[fits]]


TO_MODEL = {
    "denied_by_person": [words.denied_by_person(None), words.denied_by_person("no")],
    "denied_by_policy": [words.denied_by_policy("r")],
    "expired": [words.expired(86_400)],
    "edited": [words.edited('{"command":"ls"}')],
    "outcome_unknown": [words.outcome_unknown()],
    "given_up": [words.given_up(None), words.given_up("I looked")],
    "lost": [words.lost(3)],
    "client_silent": [words.client_silent(60)],
    "question_denied": [words.question_denied(None), words.question_denied("no")],
    "question_expired": [words.question_expired(60)],
    "cannot_approve": [words.cannot_approve()],
    "cannot_answer": [words.cannot_answer()],
    # The run is over, or the tool had a result: nothing is left to repeat.
    "ended_by_person": [words.ended_by_person(None), words.ended_by_person("Stop.")],
    "answered_by_person": [words.answered_by_person()],
    "cancelled": [words.cancelled()],
    "cancelled_asking": [words.cancelled_asking()],
    "turn_limit": [words.turn_limit(5)],
    "changed_input": [words.changed_input()],
    "failed_silently": [words.failed_silently()],
    "stopped": [words.stopped("it broke")],
    "call_given_up": [words.call_given_up("6 tries failed")],
    "left_out": [words.left_out("image")],
    "unreadable_turn": [words.unreadable_turn()],
    "left_out_when_old": [words.left_out_when_old(5, ["image"]), words.left_out_when_old(0, ["image", "image"])],
    "broken_twice": [words.broken_twice()],
    "not_run_beside_broken": [words.not_run_beside_broken()],
    # About sub-agents.
    "message_from": [words.message_from(None, "sthr_1"), words.message_from("Reader", "sthr_1")],
    "sent_to_agent": [words.sent_to_agent("Reader", "sthr_1")],
    "no_text": [words.no_text()],
    "ended_early": [words.ended_early("it was ended.")],
    "ended_by_somebody": [words.ended_by_somebody(None), words.ended_by_somebody("Stop.")],
    "refused_by_model": [words.refused_by_model()],
    "cap_reached": [words.cap_reached()],
    "retries_exhausted": [words.retries_exhausted()],
    # Mistakes of the model, which it may correct. Nobody was asked.
    "unknown_tool": [words.unknown_tool("x")],
    "invalid_input": [words.invalid_input("input.a: is required")],
    "broken_input": [words.broken_input("it ends early")],
    # Before any call.
    "one_at_a_time": [words.one_at_a_time()],
    "summary": [words.summary("They talked.")],
}
TO_OTHERS = {
    "folded_too_often",
    "turn_given_up",
    "run_given_up",
    "too_long",
    "summarize",
    "unasked",
    "expired_note",
    "replaced",
    "asks_back",
    "tool_changed",
    "leads_to",
}
"""For people and runners. `summarize` asks the model only for a text."""


def test_the_tables_name_every_sentence() -> None:
    functions = {
        name
        for name, member in vars(words).items()
        if getattr(member, "__module__", "") == words.__name__ and not name.startswith("_")
    }
    assert functions == {*TO_MODEL, *TO_OTHERS}


def test_no_sentence_invites_the_model_to_repeat_a_call() -> None:
    """A denial that reads like a temporary failure makes a loop."""
    for sentence in itertools.chain.from_iterable(TO_MODEL.values()):
        assert not {"again", "retry", "retried", "later"} & set(re.findall(r"[a-z]+", sentence.lower())), sentence


@pytest.mark.parametrize("name", list(TO_MODEL)[:10])
def test_if_the_run_goes_on_without_the_proposed_call_the_model_is_told_not_to_repeat_it(name: str) -> None:
    assert all("do not repeat" in sentence.lower() for sentence in TO_MODEL[name])


@pytest.mark.parametrize(
    ("seconds", "text"), [(86_400, "1 day"), (7200, "2 hours"), (60, "1 minute"), (90, "90 seconds"), (0.5, "0.5 seconds")]
)
def test_durations_are_in_whole_units(seconds: float, text: str) -> None:
    assert text in words.expired_note(seconds)
