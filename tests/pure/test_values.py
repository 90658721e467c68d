"""The pure functions: values in, values out."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure import words
from models.pure.backoff import backoff
from models.pure.canonical import canonical, digest
from models.pure.next_move import Calls, Finish, Go, Wait, after_reply, after_settling
from models.pure.prompting import fill, visible
from models.pure.states import SETTLED, TOOL_CALL
from models.pure.storable import storable

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


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53 + 1])
def test_what_json_cannot_say_exactly_is_refused(value: float) -> None:
    """ValueError, before it could be hashed two ways."""
    with pytest.raises(ValueError, match=r".+"):
        digest({"n": value})


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "refusal", "stop_sequence", "model_context_window_exceeded"])
def test_only_an_orderly_reply_asks_for_tools(reason: str) -> None:
    """A reply that was cut never does, whatever it holds."""
    assert isinstance(after_reply(reason, [CALL], 1, 5), Finish)


def test_calls_are_asked_for_below_the_limit_only() -> None:
    """R6."""
    assert after_reply("tool_use", [CALL], 4, 5) == Calls((CALL,))
    last = after_reply("tool_use", [CALL], 5, 5)
    assert isinstance(last, Finish)
    assert last.error
    assert last.error[0] == "tool_use_limit_reached_error"
    assert after_reply("tool_use", [], 1, 5) == Finish("end_turn")


@given(st.lists(st.sampled_from(sorted(TOOL_CALL))))
def test_the_next_turn_starts_when_all_are_settled(statuses: list[str]) -> None:
    """Not before, and with no calls at once."""
    assert after_settling(statuses) == (Go() if set(statuses) <= SETTLED else Wait())


@given(st.integers(1, 40), st.integers(), st.none() | st.floats(0, 1e9))
def test_backoff_doubles_within_its_bounds_and_obeys_what_it_is_told(attempt: int, seed: int, told: float | None) -> None:
    """At least half, at most the whole; told seconds count up to an hour."""
    wait = backoff(attempt, 1, 60, told, Random(seed))
    whole = min(60, 2.0 ** (attempt - 1))
    assert max(whole / 2, min(told or 0, 3600)) <= wait <= max(whole, min(told or 0, 3600))


def test_a_prompt_is_filled_and_hides_nothing() -> None:
    """R21: control characters and marks that turn text are shown; a cut is said; braces of the input are left alone."""
    assert fill("Run shell command: {command}", "bash", {"command": "ls {x}"}) == "Run shell command: ls {x}"
    assert fill("{tool} {missing} {n}", "bash", {"n": [1]}) == "bash {missing} [1]"
    assert "\\u202e" in fill("{command}", "bash", {"command": "safe\u202eevil"})
    assert "more characters" in fill("{command}", "bash", {"command": "x" * 5000})
    assert visible("a\x1b[2J\x00é\n") == "a\\x1b[2J\\x00é\n"


def test_what_postgres_cannot_hold_is_replaced() -> None:
    """NUL and lone surrogates, anywhere in a value, and nothing else."""
    assert storable({"a\x00": ["\ud800x", 1, None, "é\n"]}) == {"a\ufffd": ["\ufffdx", 1, None, "é\n"]}


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
    # Mistakes of the model's own, which it may mend; nobody was asked.
    "unknown_tool": [words.unknown_tool("x")],
    "invalid_input": [words.invalid_input("input.a: is required")],
    # Beforehand.
    "one_at_a_time": [words.one_at_a_time()],
}
UNTOLD = {"expired_note", "replaced", "asks_back", "tool_changed"}
"""For people and runners."""


def test_all_that_the_model_can_be_told_is_held_to_this() -> None:
    """The tables above and below name every sentence there is."""
    spoken = {name for name, found in vars(words).items() if callable(found) and not name.startswith("_")}
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
