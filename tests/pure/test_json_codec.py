"""The codec encodes and decodes as the standard library does."""

import json
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure.json.codec import decode, encode


class Word(str):
    """A subclass, as libraries define."""


class Share(float):
    """A subclass, as libraries define."""


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
def test_encoding_and_decoding_give_the_same_value(value: object) -> None:
    """With lone surrogates and integers of any length, and across both codecs."""
    assert decode(json.dumps(value)) == value
    assert json.loads(encode(value)) == value
    assert decode(encode(value).encode()) == value


@pytest.mark.parametrize("value", [Word("w"), Share(0.5), Colour.RED, Number.ONE, {Word("w"): Word("v")}, (1, [Colour.RED])])
def test_subclasses_are_encoded_as_their_base_types(value: Any) -> None:
    assert decode(encode(value)) == json.loads(json.dumps(value))


@pytest.mark.parametrize("text", ["1e999", "-1e999", "9" * 400])
def test_numbers_beyond_a_float_are_decoded(text: str) -> None:
    assert decode(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", "nul", "'a'", '{"a":1}x'])
def test_malformed_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode(text)


def test_times_are_encoded_beside_any_text() -> None:
    """In the format of ISO 8601, which Postgres reads."""
    at = datetime(2026, 11, 22, 18, 30, tzinfo=UTC)
    for text in ("x", "\ud800"):
        assert datetime.fromisoformat(decode(encode({"at": at, "text": text}))["at"]) == at


def test_a_type_without_json_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        encode({"a": object()})
