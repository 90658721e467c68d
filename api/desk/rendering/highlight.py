"""Code in pieces, each with the CSS class that pygments gives its token.

An agent chooses the text and the file's name. Some of pygments' lexers take minutes for a few thousand characters, and some of
these in one step that cannot be interrupted. So only the lexers below colour, within a limit of CPU time. Other code is plain.
`tests/pure/test_colours_cost_little.py` has texts that are hostile to lexers.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES

from models.pure.text.visible import visible_lines

LONGEST = 20_000
"""Characters of code that is coloured. Longer code is shown plain."""
_SECONDS = 0.25
"""CPU time of colouring one text."""

LANGUAGES = {
    **dict.fromkeys((".sh", ".bash"), "bash"),
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    **dict.fromkeys((".html", ".htm"), "html"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".c", ".h"), "c"),
    ".ts": "typescript",
    ".css": "css",
    ".go": "go",
    ".java": "java",
    ".json": "json",
    ".md": "markdown",
    ".rs": "rust",
    ".sql": "sql",
    ".toml": "toml",
    ".xml": "xml",
}
"""The lexers that colour, by the end of a file's name. No single step took 0.1 s with 130 hostile texts of 20,000 characters."""

_NUMBER = "m"
"""The class of a number in a shell command. The numbers of other languages have classes of their own."""

Piece = tuple[str, str]
"""A CSS class, which may be empty, and a text."""


@dataclass(frozen=True)
class Code:
    """A text to show in coloured pieces. Each iteration colours it, so that a page does so after its transaction."""

    text: str
    language: str | None

    def __bool__(self) -> bool:
        return bool(self.text)

    def __iter__(self) -> Iterator[Piece]:
        text = visible_lines(self.text)
        pieces = _coloured(text, self.language) if self.language and len(text) <= LONGEST else None
        return iter(pieces or [("", text)])


def command(text: str) -> Code:
    """Return a shell command in coloured pieces. Every character that a screen would hide is an escape."""
    return Code(text, "bash")


def code(text: str, path: str) -> Code:
    """Return the text of a file in coloured pieces. The file's name tells the language."""
    return Code(text, LANGUAGES.get(PurePosixPath(path).suffix.lower()))


def _coloured(text: str, language: str) -> list[Piece] | None:
    """Return the pieces; None if the time is over, or if the lexer would change one character of the text."""
    until = time.thread_time() + _SECONDS
    pieces: list[Piece] = []
    for token, value in get_lexer_by_name(language, stripnl=False, ensurenl=False).get_tokens(text):
        if time.thread_time() > until:
            return None
        pieces.append((_css(token), value))
    return _with_plain_versions(pieces) if "".join(value for _, value in pieces) == text else None


def _with_plain_versions(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with no colour on the first number of a word with dots, such as `2.8.1`."""
    after = [*(text for _, text in pieces), ""][1:]
    return [("" if css == _NUMBER and rest.startswith(".") else css, text) for (css, text), rest in zip(pieces, after, strict=True)]


def _css(token: Any) -> str:
    while token not in STANDARD_TYPES:
        token = token.parent
    return str(STANDARD_TYPES[token])
