"""Masks the secrets in texts."""

import re

from models.pure.json import fitting
from models.pure.masking.leaders import COMMANDS, NAMES
from models.pure.masking.shapes import SHAPES
from models.pure.masking.words import Span, TextBefore
from models.pure.regex import compile_re2

MARKER = "«masked»"
"""Stands for a secret, whatever its length. It has no meaning in shells, programs and formats."""
_MARKER = MARKER.encode()
_FINDERS = [(compile_re2(pattern), secrets) for pattern, secrets in (*SHAPES, *NAMES, *COMMANDS)]
_ANY = compile_re2("|".join(f"(?:{pattern})" for pattern, _ in (*SHAPES, *NAMES, *COMMANDS)), captures=False)
"""Matches every text that may hold a secret. Much cheaper than the patterns one by one."""
_MOST = 10_000
"""Places that are examined in one value. Beyond that, a text with such a place is masked as a whole."""
_SECONDS = 1.0
"""CPU time for one value: several times what `_MOST` places take. Beyond it, such a text is masked as a whole as well."""
_ROUNDS = 5
"""Passes over one text, since masking can reveal a secret beside. If the last still finds one, the text is masked as a whole."""


class TextMasker:
    """Masks the texts of one value, with one limit for all of them."""

    def __init__(self) -> None:
        self._places_left = _MOST
        fitting.start(_SECONDS)
        self.secrets: set[str] = set()
        """The secrets in these texts."""

    def read(self, text: str) -> str:
        """Return the masked text. Masking it again changes nothing."""
        data = text.encode("utf-8", "surrogatepass")
        try:
            for _ in range(_ROUNDS):
                before = data
                if not _ANY.search(before):
                    return before.decode("utf-8", "surrogatepass")
                data = self._mask_once(before)
                if data == before:
                    return before.decode("utf-8", "surrogatepass")
        except fitting.TooSlow:
            self._places_left = 0  # for the other texts too
        self.secrets.add(text)
        return MARKER

    def _mask_once(self, text: bytes) -> bytes:
        """Return the text after one pass."""
        parts, at = [], 0
        for start, end in merged(self._spans(text)):
            parts.append(text[at:start])
            self.secrets.update(text[start:end].decode("utf-8", "surrogatepass").split(MARKER))
            at = end
        return _MARKER.join([*parts, text[at:]])

    def _spans(self, text: bytes) -> list[Span]:
        spans = [match.span() for match in re.finditer(_MARKER, text)]
        for pattern, secrets in _FINDERS:
            before = TextBefore(text)
            for match in pattern.finditer(text):
                self._places_left -= 1
                if self._places_left < 0:
                    raise fitting.TooSlow
                fitting.check_time()
                spans += secrets(text, match, before)
        return spans


def merged(spans: list[Span]) -> list[Span]:
    """Return the spans in order, with overlapping and adjacent ones merged."""
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result
