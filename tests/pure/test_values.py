"""The pure functions: values in, values out."""

import hashlib
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

from models.pure import words
from models.pure.backoff import backoff
from models.pure.canonical import canonical, digest, is_digest, spelled
from models.pure.next_move import Calls, Finish, after_reply, all_settled
from models.pure.prompting import fill
from models.pure.states import SETTLED, TOOL_CALL
from models.pure.storable import is_deep, storable
from models.pure.visible import visible_lines

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
    """Whatever order its keys came in."""
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
    """Also where a quicker encoder writes it."""
    assert canonical(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["\ue000", "\uffff", "z", "é"])
def test_names_are_in_the_order_of_rfc_8785_beyond_the_first_plane_of_unicode_too(name: str) -> None:
    """UTF-16's, which is not that of their code points."""
    value = {name: 1, "\U00010000": {name: 2, "\U0010ffff": 3}}
    assert canonical(value) == canonical(dict(reversed(value.items()))) == rfc8785.dumps(value)  # type: ignore[arg-type]


def test_what_is_deep_is_spelled_as_deep_as_ever() -> None:
    value: object = 1
    for _ in range(500):
        value = {"a": value}
    assert canonical(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, -(2**53)])
def test_what_json_cannot_say_exactly_is_refused(value: float) -> None:
    """ValueError, before it could be hashed two ways."""
    with pytest.raises(ValueError, match=r".+"):
        digest({"n": value})


@pytest.mark.parametrize("value", [{"n": 2**60, "a": [1]}, {"n": float("nan"), "a": 1}], ids=str)
def test_what_has_no_spelling_is_shown_as_its_json_and_has_no_hash(value: Any) -> None:
    """Somebody wrote it past our doors: who looks at it sees it, and it does not run."""
    assert spelled(value) == json.dumps(value, sort_keys=True)
    assert not is_digest(value, hashlib.sha256(spelled(value).encode()).hexdigest())


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "refusal", "stop_sequence", "model_context_window_exceeded"])
def test_only_an_orderly_reply_asks_for_tools(reason: str) -> None:
    """A reply that was cut never does, whatever it holds."""
    assert isinstance(after_reply(reason, [CALL], 1, 5), Finish)


def test_calls_are_asked_for_below_the_limit_only() -> None:
    assert after_reply("tool_use", [CALL], 4, 5) == Calls((CALL,))
    last = after_reply("tool_use", [CALL], 5, 5)
    assert isinstance(last, Finish)
    assert last.error
    assert last.error[0] == "tool_use_limit_reached_error"
    assert after_reply("tool_use", [], 1, 5) == Finish("end_turn")


@given(st.lists(st.sampled_from(sorted(TOOL_CALL))))
def test_the_next_turn_starts_when_all_are_settled(statuses: list[str]) -> None:
    """Not before, and with no calls at once."""
    assert all_settled(statuses) == (set(statuses) <= SETTLED)


@given(st.integers(1, 40), st.integers(), st.none() | st.floats(0, 1e9))
def test_backoff_doubles_within_its_bounds_and_obeys_what_it_is_told(attempt: int, seed: int, told: float | None) -> None:
    """At least half, at most the whole; told seconds count up to an hour."""
    wait = backoff(attempt, 1, 60, told, Random(seed))
    whole = min(60, 2.0 ** (attempt - 1))
    assert max(whole / 2, min(told or 0, 3600)) <= wait <= max(whole, min(told or 0, 3600))


def test_a_prompt_is_filled_and_hides_nothing() -> None:
    """Control characters and marks that turn text are shown; a cut is said; braces of the input are left alone."""
    assert fill("Run shell command: {command}", "bash", {"command": "ls {x}"}) == "Run shell command: ls {x}"
    assert fill("{tool} {missing} {n}", "bash", {"n": [1]}) == "bash {missing} [1]"
    assert "<U+202E>" in fill("{command}", "bash", {"command": "safe\u202eevil"})
    assert "more characters" in fill("{command}", "bash", {"command": "x" * 5000})
    assert visible_lines("a\x1b[2J\x00é\n") == "a<U+001B>[2J<U+0000>é\n"


def test_what_postgres_cannot_hold_is_replaced() -> None:
    """NUL and lone surrogates, anywhere in a value, and nothing else."""
    assert storable({"a\x00": ["\ud800x", 1, None, "é\n"]}) == {"a\ufffd": ["\ufffdx", 1, None, "é\n"]}
    assert storable("\ud7ff\udfff\ue000\U0010ffff") == "\ud7ff\ufffd\ue000\U0010ffff"


def nested(levels: int, within: Callable[[Any], Any] = lambda inside: [inside]) -> Any:
    """So many levels around a 1."""
    return reduce(lambda inside, _: within(inside), range(levels), 1)


@pytest.mark.parametrize("within", [lambda inside: [inside], lambda inside: {"a": inside}], ids=["lists", "objects"])
def test_nothing_is_stored_on_which_its_readers_run_out_of_stack(within: Callable[[Any], Any]) -> None:
    """Nor does who sees to it."""
    deep = nested(10_000, within)
    assert is_deep(deep)
    assert not is_deep(storable(deep), 100)
    assert "\ufffd" in str(storable(deep))


def test_what_is_not_deep_is_stored_as_it_is() -> None:
    fits = {"a": nested(59), "b": "x"}
    assert not is_deep(fits)
    assert is_deep([fits])
    assert is_deep(["x", nested(60)])
    assert is_deep({"b": "x", "a": nested(60)})
    assert storable([[fits]]) == [[fits]]


TOLD = {
    "denied": [words.denied(None), words.denied("no")],
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
    # The run is over with these, or the tool did or said something: nothing is left to repeat.
    "ended_by_person": [words.ended_by_person(None), words.ended_by_person("Stop.")],
    "answered": [words.answered()],
    "cancelled": [words.cancelled()],
    "cancelled_asking": [words.cancelled_asking()],
    "turn_limit": [words.turn_limit(5)],
    "changed_input": [words.changed_input()],
    "failed_silently": [words.failed_silently()],
    "stopped": [words.stopped("it broke")],
    "left_out": [words.left_out("image")],
    "left_out_when_old": [words.left_out_when_old("image")],
    "cut_when_old": [words.cut_when_old(5)],
    "broken_twice": [words.broken_twice()],
    "not_run_beside_broken": [words.not_run_beside_broken()],
    # Mistakes of the model's own, which it may mend; nobody was asked.
    "unknown_tool": [words.unknown_tool("x")],
    "invalid_input": [words.invalid_input("input.a: is required")],
    "broken_input": [words.broken_input("it ends early")],
    # Beforehand.
    "one_at_a_time": [words.one_at_a_time()],
    "summary": [words.summary("They talked.")],
}
UNTOLD = {
    "folded_too_often",
    "too_long",
    "summarize",
    "unasked",
    "expired_note",
    "replaced",
    "asks_back",
    "tool_changed",
    "leads_to",
}
"""For people and runners; `summarize` asks the model for nothing but a text."""


def test_all_that_the_model_can_be_told_is_held_to_this() -> None:
    """The tables above and below name every sentence there is."""
    spoken = {
        name
        for name, found in vars(words).items()
        if getattr(found, "__module__", "") == words.__name__ and not name.startswith("_")
    }
    assert spoken == {*TOLD, *UNTOLD}


@pytest.mark.parametrize("said", [said for all_of in TOLD.values() for said in all_of])
def test_no_words_to_the_model_invite_it_to_repeat_the_call(said: str) -> None:
    """A denial that reads like a hiccup makes a loop."""
    assert not {"again", "retry", "retried", "later"} & set(re.findall(r"[a-z]+", said.lower()))


@pytest.mark.parametrize("name", [*list(TOLD)[:10]])
def test_what_could_be_tried_once_more_says_not_to(name: str) -> None:
    """Wherever the run goes on and the call did not run as it was proposed."""
    assert all("do not repeat" in said.lower() for said in TOLD[name])


@pytest.mark.parametrize(
    ("seconds", "said"), [(86_400, "1 day"), (7200, "2 hours"), (60, "1 minute"), (90, "90 seconds"), (0.5, "0.5 seconds")]
)
def test_durations_read_as_people_say_them(seconds: float, said: str) -> None:
    """Whole units only."""
    assert said in words.expired_note(seconds)
