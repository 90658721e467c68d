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
_PLACEHOLDER = re.compile(rb"\$\w+|%\w+%|\{[\w.]*\}?|%\(?\w*\)?s|[^\w\x80-\xff]+")
"""Without templates in double braces. Stops at the first character that does not fit, so that many of them cost little."""
_QUOTE = re.compile(rb"['\"]")
_STRANGE = re.compile(rb"\\|<<|(?:^|[\s;|&()])#")


class TextBefore:
    """What is known of a text from places further left, so that nothing is read again for each place. Places come in order."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0
        self._outer = b""
        """The quote that is open at `_at`, as a shell reads it; else empty."""
        self._inner = 0
        """Quotes of the other kind inside it so far."""
        self._strange = False
        self._word: Span = (0, 0)
        self._expansion: Span = (0, -1)
        self.pairs_end = 0
        """The end of the pairs of a cookie that were read."""

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

    def word_end(self, at: int) -> int:
        """Return the end of the word that begins at `at`; `at` itself if none does."""
        start, end = self._word
        # Within a word, a word ends where that one does, unless `at` splits a backslash from its character.
        if not start <= at < end or self._text[at - 1 : at] == b"\\":
            end = _end(_WORD, self._text, at)
            self._word = (at, end)
        return end

    def expansion(self, start: int, end: int) -> int:
        """Return where the first substitution of a shell between the two places begins; `end` if there is none."""
        since, place = self._expansion
        if not since <= start <= place:
            match = _EXPANSION.search(self._text, start)
            place = match.start() if match else len(self._text)
            self._expansion = (start, place)
        return min(place, end)

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


def secret_at(text: bytes, at: int, before: TextBefore) -> list[Span]:
    """Return the secret that begins at `at`, or after a quote there: at most a word, or the whole content of certain quotes.

    Substitutions of a shell (`$(...)`, `${...}`, backticks) are never part of a secret. Variables and placeholders are not secrets.
    """
    if text[at : at + 1] in _PREFIXES and text[at + 1 : at + 2] in _QUOTED:
        at += 1  # the prefix of a literal in code, such as b"..."
    opening = text[at : at + 1]
    if opening == b"\\" and text[at + 1 : at + 2] in _QUOTED:
        return _trimmed(text, at + 2, _end(_WORD_IN_ESCAPED_QUOTES, text, at + 2), before)
    if opening not in _QUOTED:
        return _trimmed(text, at, before.word_end(at), before)
    end = before.word_end(at + 1)
    if text[end : end + 1] != opening and (content := before.quoted(at)):
        closing = _end(content, text, at + 1)
        if text[closing : closing + 1] == opening:
            end = closing
    return _trimmed(text, at + 1, end, before)


def _end(pattern: Any, text: bytes, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _trimmed(text: bytes, start: int, end: int, before: TextBefore) -> list[Span]:
    end = before.expansion(start, end)
    if start == end or text.startswith(b"{{", start, end) or _PLACEHOLDER.fullmatch(text, start, end):
        return []
    return [(start, end)]
