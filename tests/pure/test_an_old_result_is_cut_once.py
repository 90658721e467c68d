"""Cutting an old result that is cut already changes nothing, whatever blocks the result has."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure.folding import RESULT_CHARACTERS, Part, cut, tokens_of

LONG = st.sampled_from(["a" * 1_999, "a" * 9_000, '"\n' * 3_000, "\x01é" * 999, " " * 5_000])
TEXTS = st.one_of(st.text(max_size=80), LONG)
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
    st.sampled_from(["image", "document"]).map(
        lambda kind: {"type": kind, "source": {"type": "base64", "media_type": "a/b", "data": "A" * 900}}
    ),
)


def result(content: list[dict[str, Any]]) -> Part:
    """A turn with one call and its result."""
    return Part(1, 1, [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "sevt_1", "content": content}]}])


def content_of(part: Part) -> list[dict[str, Any]]:
    """The content of the turn's result."""
    content: list[dict[str, Any]] = part.messages[0]["content"][0]["content"]
    return content


@given(st.lists(BLOCKS, max_size=120))
def test_cutting_a_cut_result_changes_nothing(content: list[dict[str, Any]]) -> None:
    once = cut(result(content))
    assert cut(once) is once


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": f"hit {number}: " + "w" * 120} for number in range(60)],
        [{"type": "image", "source": {"type": "base64", "data": "A" * 900}} for _ in range(100)],
        [{"type": "text", "text": "x"} for _ in range(3_000)],
    ],
    ids=["texts", "images", "small texts"],
)
def test_a_result_of_many_blocks_becomes_its_beginning_and_one_note(content: list[dict[str, Any]]) -> None:
    short = content_of(cut(result(content)))
    assert len(short) <= 2
    assert sum(len(block["text"]) for block in short[:-1]) <= RESULT_CHARACTERS
    assert "left out" in short[-1]["text"]
    assert tokens_of(short) < tokens_of(content)


def test_small_texts_that_are_long_only_as_json_stay_whole() -> None:
    short = content_of(cut(result([{"type": "text", "text": "x"} for _ in range(500)])))
    assert short == [{"type": "text", "text": "\n".join("x" * 500)}]


def test_the_note_counts_all_that_is_left_out() -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 5_000}}
    _, note = content_of(cut(result([picture, {"type": "text", "text": "a" * 2_500}, picture])))
    assert note["text"].startswith("(500 more characters and 2 blocks of other kinds (image) left out:")
