"""A card costs little CPU time to draw, whatever text and file name an agent chose. What takes too long to colour is plain."""

import random
import time

import pytest

from api.desk.rendering import highlight
from models.pure.text.line_diff import hunks

CPU_SECONDS = 0.6
"""A quarter of a second, and what one step of a lexer takes beyond."""

HOSTILE = {
    **dict.fromkeys(("setup.au3", "x.c", "x.cu", "x.cpp", "Makefile", "x.mk", "x.service", "x.cs", "x.groovy", "x.java"), "\n"),
    **dict.fromkeys(("x.ini", "x.cfg", "x.properties", "x.conf"), "a = "),
    **dict.fromkeys((".htaccess", "x.php", "x.jsp", "x.vue"), "<"),
    **dict.fromkeys(("x.aj", "x.scala", "x.kt", "x.swift", "x.hs", "x.ml"), "a "),
    **dict.fromkeys(("x.diff", "x.md", "x.rst", "x.tex", "x.rb", "x.pl", "x.sql"), "-"),
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
def test_a_hostile_text_is_shown_whole_and_soon(path: str) -> None:
    text = (HOSTILE[path] * highlight.LONGEST)[: highlight.LONGEST]
    before = time.thread_time()
    assert "".join(piece for _, piece in highlight.code(text, path)) == text
    assert time.thread_time() - before < CPU_SECONDS


def test_code_in_a_common_language_has_colours() -> None:
    for end in highlight.LANGUAGES:
        assert any(css for css, _ in highlight.code('{"a": 1} <b> # *a*', f"folder/a{end}")), end
    assert list(highlight.code("a = 1", "a.au3")) == [("", "a = 1")]


@pytest.mark.parametrize("letters", ["a", "ab", "abcdefghijklmnopqrst"])
def test_files_with_many_equal_lines_are_compared_soon(letters: str) -> None:
    chosen = random.Random(1)
    before, after = ("\n".join(chosen.choices(letters, k=1990)) for _ in range(2))
    began = time.thread_time()
    assert hunks(before + "\n.", after + "\n:")[0]
    assert time.thread_time() - began < CPU_SECONDS
