"""A result for the model is valid text without invisible characters, and no longer than the setting."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from workers.tools import clean
from workers.tools.output import Clip, OutputSoFar


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("50%\r100%", "50%\\x0d100%"),
        ("\0\x1b[1m\x7f\x85", "\\x00\\x1b[1m\\x7f\\x85"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("é 漢 👩\u200d💻", "é 漢 👩\u200d💻"),
    ],
)
def test_invisible_characters_are_written_out(raw, shown):
    assert clean.escape_controls(raw) == shown


def test_invalid_bytes_are_replaced():
    assert clean.decode(b"caf\xe9\xff") == "caf\ufffd\ufffd"


def test_a_cut_says_how_much_is_missing_and_keeps_both_ends():
    short = clean.shorten("a" * 5_000 + "z" * 5_000, 1_000)
    head, note, tail = short.split("\n")
    assert set(head) == {"a"}
    assert set(tail) == {"z"}
    assert note == f"[... {10_000 - len(head) - len(tail)} bytes left out ...]"


@given(some.text(), some.integers(64, 300))
def test_a_cut_text_is_valid_and_within_its_limit(text, limit):
    text = clean.escape_controls(text) * 20
    short = clean.shorten(text, limit)
    assert len(short.encode()) <= limit
    assert "\ufffd" not in short or "\ufffd" in text


@given(some.lists(some.text(max_size=400), max_size=12), some.integers(900, 2_000))
def test_blocks_share_one_limit_and_are_never_empty(texts, limit):
    blocks = clean.bounded([{"type": "text", "text": text} for text in texts], limit, limit)[0]
    assert sum(len(b["text"].encode()) for b in blocks) <= limit
    assert blocks
    assert all(b["text"] for b in blocks)
    json.dumps(blocks).encode()


def test_small_blocks_stay_whole_beside_a_large_one():
    blocks = clean.bounded([{"type": "text", "text": t} for t in ("x" * 9_000, "exit code: 0")], 1_000, 1_000)[0]
    assert blocks[1]["text"] == "exit code: 0"
    assert len(blocks[0]["text"]) > 900


def test_a_thousand_blocks_become_a_hundred():
    blocks = clean.bounded([{"type": "text", "text": "x"}] * 1_000, 1_000, 1_000)[0]
    assert len(blocks) == 101
    assert blocks[-1]["text"] == "[... 900 blocks left out ...]"


def test_the_callers_blocks_are_not_changed():
    blocks = [{"type": "text", "text": "\0"}]
    clean.bounded(blocks, 100, 100)
    assert blocks == [{"type": "text", "text": "\0"}]


@given(some.lists(some.binary(max_size=50)), some.integers(1, 40))
def test_a_clip_keeps_both_ends_in_bounded_memory(pieces, limit):
    clip, whole = Clip(limit), b"".join(pieces)
    for piece in pieces:
        clip.add(piece)
        assert len(clip._head) + len(clip._tail) <= 1.5 * limit + 2
    assert clip.total == len(whole)
    assert whole.startswith(clip._head)
    assert whole.endswith(clip._tail)


def test_a_clip_cuts_no_character():
    for limit in range(300, 310):
        clip = Clip(limit)
        for byte in ("é漢👩" * 500).encode():
            clip.add(bytes([byte]))
        assert "\ufffd" not in clip.text(1_000)


def test_one_stream_may_use_what_the_other_leaves():
    output = OutputSoFar(1_000)
    output.add("stdout", b"o" * 5_000)
    output.add("stderr", b"e" * 10)
    texts = output.texts()
    assert texts["stderr"] == "e" * 10
    assert 900 < len(texts["stdout"]) <= 990


def test_bytes_that_grow_when_written_out_stay_within_the_limit():
    output = OutputSoFar(1_000)
    for stream in ("stdout", "stderr"):
        output.add(stream, b"\0" * 900)
    assert sum(len(t) for t in output.texts().values()) <= 1_000
