"""Finds the extent of one secret in a text: a word, or the content of certain quotes."""

import re
from typing import Any

from models.pure.regex import compile_re2

Span = tuple[int, int]

_WORD = compile_re2("(?:\\\\[^\\snrt\"'`]|\\\\ |[^\\s\"'`;|&<>()\\\\])+")
_WORD_IN_ESCAPED_QUOTES = compile_re2("[^\\s\"'`;|&<>()\\\\]+")
_QUOTED = {b"'": compile_re2("[^'\\n`]*"), b'"': compile_re2('(?:\\\\[^\\n]|[^"\\\\\\n`])*')}
_QUOTED_IN_THE_OTHER = compile_re2("[^'\"\\\\\\n`]*")
_PREFIXES = frozenset({b"b", b"f", b"r", b"u"})
_EXPANSION = re.compile(rb"\$[({]")
_PLACEHOLDER = re.compile(rb"\$\w+|%\w+%|\{[\w.]*\}?|\{\{.*|%\(?\w*\)?s|[^\w\x80-\xff]+")
_QUOTE = re.compile(rb"['\"]")
_STRANGE = re.compile(rb"\\|<<|(?:^|[\s;|&()])#")


class Quotes:
    """The state of quotes to the left of a place in a text. Places must be requested in order."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0
        self._outer = b""
        """The quote that is open at `_at`, as a shell reads it; else empty."""
        self._inner = 0
        """Quotes of the other kind inside it so far."""
        self._strange = False

    def quoted(self, at: int) -> Any:
        """Return the expression for the content of the quotes that open at `at`; None if that is uncertain.

        If a closing quote were taken for an opening one, the mask would hide the rest of the command instead of a secret. So
        comments, here-documents and backslashes to the left, for which shells have special rules, make it uncertain.
        """
        self._read_to(at)
        own = self._text[at : at + 1]
        if self._strange or self._outer == own or self._inner % 2:
            return None
        return _QUOTED_IN_THE_OTHER if self._outer else _QUOTED[own]

    def _read_to(self, at: int) -> None:
        self._strange = self._strange or bool(_STRANGE.search(self._text[max(0, self._at - 1) : at]))
        if not self._strange:
            for match in _QUOTE.finditer(self._text, self._at, at):
                if not self._outer:
                    self._outer, self._inner = match[0], 0
                elif self._outer == match[0]:
                    self._outer, self._inner = b"", 0
                else:
                    self._inner += 1
        self._at = max(self._at, at)


def secret_at(text: bytes, at: int, quotes: Quotes) -> list[Span]:
    """Return the secret that begins at `at`, or after a quote there: at most a word, or the whole content of certain quotes.

    Substitutions of a shell (`$(...)`, `${...}`, backticks) are never part of a secret. Variables and placeholders are no secrets.
    """
    if text[at : at + 1] in _PREFIXES and text[at + 1 : at + 2] in _QUOTED:
        at += 1  # the prefix of a literal in code, such as b"..."
    opening = text[at : at + 1]
    if opening == b"\\" and text[at + 1 : at + 2] in _QUOTED:
        return _trimmed(text, at + 2, _end(_WORD_IN_ESCAPED_QUOTES, text, at + 2))
    if opening not in _QUOTED:
        return _trimmed(text, at, _end(_WORD, text, at))
    end = _end(_WORD, text, at + 1)
    if text[end : end + 1] != opening and (quoted := quotes.quoted(at)):
        closing = _end(quoted, text, at + 1)
        if text[closing : closing + 1] == opening:
            end = closing
    return _trimmed(text, at + 1, end)


def _end(pattern: Any, text: bytes, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _trimmed(text: bytes, start: int, end: int) -> list[Span]:
    if expansion := _EXPANSION.search(text, start, end):
        end = expansion.start()
    if start == end or _PLACEHOLDER.fullmatch(text, start, end):
        return []
    return [(start, end)]
