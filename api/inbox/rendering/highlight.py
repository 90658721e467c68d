"""Code in pieces, each with the CSS class that pygments gives its token."""

from typing import Any

from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from models.pure.visible import visible_lines

LONGEST = 20_000
"""Characters of code that is coloured. Longer code is shown plain."""

Piece = tuple[str, str]
"""A CSS class, which may be empty, and a text."""


def command(text: str) -> list[Piece]:
    """Return a shell command in coloured pieces. Every character that a screen would hide is an escape."""
    return _pieces(text, "bash")


def code(text: str, path: str) -> list[Piece]:
    """Return the text of a file in coloured pieces. The file's name tells the language."""
    try:
        name = get_lexer_for_filename(path).aliases[0]
    except (ClassNotFound, IndexError):
        name = "text"
    return _pieces(text, name)


def _pieces(text: str, language: str) -> list[Piece]:
    shown = visible_lines(text)
    if len(shown) > LONGEST:
        return [("", shown)]
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    pieces = [(_css(token), value) for token, value in lexer.get_tokens(shown)]
    # The lexer may only colour: if it changes one character, the text is shown plain.
    return pieces if "".join(value for _, value in pieces) == shown else [("", shown)]


def _css(token: Any) -> str:
    while token not in STANDARD_TYPES:
        token = token.parent
    return str(STANDARD_TYPES[token])
