"""A card costs little CPU time to draw, whatever text and file name an agent chose. What takes too long to colour is plain."""

import json
import random
import time
from typing import Any

import pytest

from api.desk.rendering import highlight
from api.desk.rendering.fields import pretty
from models.pure.json.storable import DEPTH
from models.pure.text.line_diff import hunks

CPU_SECONDS = 0.4
"""More than what one step of a lexer takes, and the comparison of two files."""

PLAIN = [
    "setup.au3",
    "x.cu",
    "x.cpp",
    "Makefile",
    "x.mk",
    "x.service",
    "x.cs",
    "x.groovy",
    "x.ini",
    "x.cfg",
    "x.properties",
    "x.conf",
]
PLAIN += [".htaccess", "x.php", "x.jsp", "x.vue", "x.aj", "x.scala", "x.kt", "x.swift", "x.hs", "x.ml", "x.diff", "x.rst", "x.tex"]
PLAIN += ["x.rb", "x.pl"]
"""Files whose lexers take too long for some text."""
HOSTILE = {
    **dict.fromkeys(("x.c", "x.java"), "\n"),
    **dict.fromkeys(("x.md", "x.sql"), "-"),
    "x.py": " \n",
    "x.yaml": "*",
    "x.js": "a.",
    "x.ts": ".",
    "x.html": "<style>",
    "x.xml": "&",
    "x.css": '\\"',
    "x.rs": "/",
    "x.go": '\\"',
    "x.json": "[",
    "x.toml": "[",
    "x.sh": "#[",
}
"""A text that is hostile, repeated, to the lexer of a file."""


@pytest.mark.parametrize("path", HOSTILE)
def test_a_hostile_text_is_shown_whole_and_soon(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert highlight._SECONDS <= 0.25
    monkeypatch.setattr(highlight, "_SECONDS", 0.01)
    text = (HOSTILE[path] * highlight.LONGEST)[: highlight.LONGEST]
    before = time.thread_time()
    assert "".join(piece for _, piece in highlight.code(text, path)) == text
    assert time.thread_time() - before < CPU_SECONDS


def test_a_value_costs_no_more_for_each_level_around_it() -> None:
    value: Any = list(range(49_000))
    for _ in range(DEPTH):
        value = [value]
    before = time.thread_time()
    text = pretty(value)
    assert time.thread_time() - before < CPU_SECONDS
    assert json.loads(text) == value


def test_a_file_whose_lexer_may_take_long_has_no_colours() -> None:
    for path in PLAIN:
        assert list(highlight.code('a = 1 # "b"', path)) == [("", 'a = 1 # "b"')], path


def test_code_in_a_common_language_has_colours() -> None:
    for end in highlight.LANGUAGES:
        assert any(css for css, _ in highlight.code('{"a": 1} <b> # *a*', f"folder/a{end}")), end


@pytest.mark.parametrize("letters", ["a", "ab", "abcdefghijklmnopqrst"])
def test_files_with_many_equal_lines_are_compared_soon(letters: str) -> None:
    chosen = random.Random(1)
    before, after = ("\n".join(chosen.choices(letters, k=1990)) for _ in range(2))
    began = time.thread_time()
    assert hunks(before + "\n.", after + "\n:")[0]
    assert time.thread_time() - began < CPU_SECONDS
