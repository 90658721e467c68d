"""Masks the secrets in a text, and keeps the text behind each mask."""

import re
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate

from models.pure.masking.leaders import COMMANDS, COMMANDS_HINT, NAMES, NAMES_HINT
from models.pure.masking.shapes import SHAPES, SHAPES_HINT, Span
from models.pure.regex import compile_re2

MARKER = "«masked»"
"""Stands for a secret, whatever its length. It has no meaning in shells, programs and formats."""
_MARKER = MARKER.encode()
_GROUPS = (
    (compile_re2(SHAPES_HINT), SHAPES),
    (compile_re2(NAMES_HINT), NAMES),
    (compile_re2(COMMANDS_HINT), COMMANDS),
)
_HINT = compile_re2(f"{SHAPES_HINT}|{NAMES_HINT}|{COMMANDS_HINT}|{MARKER}")
_MOST = 4000
"""Places that are examined in one value. Beyond that, a text with such a place is masked as a whole."""
_ROUNDS = 4
"""Passes over one text, since masking can reveal a secret beside. After the last, the text is masked as a whole."""


@dataclass(frozen=True)
class Reading:
    """The masked text, and the text that each of its markers hides, in order."""

    shown: str
    hidden: tuple[str, ...]


class _TooMany(Exception):
    """The text has more than `_MOST` places."""


def suspects(texts: Collection[str]) -> set[str]:
    """Return those of the texts that could hold a secret or a marker. Searches all texts at once."""
    spelled = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = list(accumulate(len(text) + 1 for text in spelled))
    joined = b"\n".join(spelled)
    suspected, listed = set(), list(texts)
    at = 0
    while hit := _HINT.search(joined, at):
        for index in range(bisect_right(ends, hit.start()), bisect_right(ends, hit.end() - 1) + 1):
            suspected.add(listed[index])
        at = ends[index]
    return suspected


class Reader:
    """Reads the texts of one value, with one limit for all of them."""

    def __init__(self) -> None:
        self._left = _MOST
        self._known: dict[str, Reading] = {}

    def read(self, text: str) -> Reading:
        """Return the masked text. Masking it again changes nothing."""
        if text not in self._known:
            self._known[text] = self._read(text)
        return self._known[text]

    def _read(self, text: str) -> Reading:
        try:
            reading, looked_at = self._once(text)
            self._left -= looked_at
            for _ in range(_ROUNDS):
                if not reading.hidden:
                    return reading
                again, _ = self._once(reading.shown)
                if again.shown == reading.shown:
                    return reading
                reading = _through(again, reading)
        except _TooMany:
            self._left = 0
        return Reading(MARKER, (text,))

    def _once(self, text: str) -> tuple[Reading, int]:
        spelled = text.encode("utf-8", "surrogatepass")
        shown, hidden, at = [], [], 0
        spans, looked_at = self._spans(spelled)
        for start, end in joined(spans):
            shown.append(spelled[at:start])
            hidden.append(spelled[start:end].decode("utf-8", "surrogatepass"))
            at = end
        shown.append(spelled[at:])
        return Reading(_MARKER.join(shown).decode("utf-8", "surrogatepass"), tuple(hidden)), looked_at

    def _spans(self, text: bytes) -> tuple[list[Span], int]:
        if text.count(_MARKER) > _MOST:
            raise _TooMany
        spans = [match.span() for match in re.finditer(_MARKER, text)]
        looked_at = 0
        for finder in [finder for hint, finders in _GROUPS if hint.search(text) for finder in finders]:
            for span in finder.spans(text):
                looked_at += 1
                if looked_at > self._left:
                    raise _TooMany
                if span:
                    spans.append(span)
        return spans, looked_at


def put_back(shown: str, hidden: tuple[str, ...]) -> str:
    """Return the text with each marker, in order, replaced by its hidden text. Raises ValueError if their number differs."""
    first, *parts = shown.split(MARKER)
    return first + "".join(secret + part for secret, part in zip(hidden, parts, strict=True))


def _through(again: Reading, first: Reading) -> Reading:
    """Combine the reading of a masked text with the reading that masked it, into one reading of the original."""
    at, hidden = 0, []
    for secret in again.hidden:
        count = secret.count(MARKER)
        hidden.append(put_back(secret, first.hidden[at : at + count]))
        at += count
    return Reading(again.shown, tuple(hidden))


def joined(spans: list[Span]) -> list[Span]:
    """Return the spans in order, with overlapping and adjacent ones merged."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
