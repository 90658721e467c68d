"""The quick codec says and reads what the standard library would."""

import json
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure.json_codec import decode, encode


class Word(str):
    """As libraries have them."""


class Share(float):
    """As libraries have them too."""


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=12,
)


@given(ANY)
def test_what_is_said_is_read_again(value: object) -> None:
    """Lone surrogates and integers of any length among it; each codec reads the other's words."""
    assert decode(json.dumps(value)) == value
    assert json.loads(encode(value)) == value
    assert decode(encode(value).encode()) == value


@pytest.mark.parametrize("value", [Word("w"), Share(0.5), Colour.RED, Number.ONE, {Word("w"): Word("v")}, (1, [Colour.RED])])
def test_kinds_of_what_json_has_are_said_as_what_they_are(value: Any) -> None:
    assert decode(encode(value)) == json.loads(json.dumps(value))


@pytest.mark.parametrize("text", ["1e999", "-1e999", "9" * 400])
def test_numbers_beyond_a_float_are_read_as_ever(text: str) -> None:
    assert decode(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", "nul", "'a'", '{"a":1}x'])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode(text)


def test_times_are_said_beside_anything() -> None:
    """As Postgres reads them."""
    at = datetime(2026, 11, 22, 18, 30, tzinfo=UTC)
    for text in ("x", "\ud800"):
        assert datetime.fromisoformat(decode(encode({"at": at, "text": text}))["at"]) == at


def test_what_json_does_not_have_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        encode({"a": object()})
