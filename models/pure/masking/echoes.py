"""Masked values of a call's input, found again in texts that come from the call: its result, its output, what it asks.

A value is found as it is and as programs usually write it into other texts: with backslashes, in JSON (also within JSON), percent-
encoded, as HTML or XML, in base64 (any alignment, with line ends) and in hexadecimal digits. Where a text was cut or broken into
lines, a part of at least LEAST characters at the end or the beginning of a line is found, too. Compressed, encrypted, reversed or
otherwise transformed values are not found.

The search is linear in the text: values are put together in a few expressions of bounded size. Beyond MOST characters of values,
or PLACES hits in one text, a text is masked whole.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Any

from models.pure.masking.texts import MARKER, joined
from models.pure.regex import compile_re2, escape

LEAST = 8
"""Characters: shorter values would be found everywhere."""
MOST = 4_096
"""Characters of all values together."""
PLACES = 20_000
_PIECE = 64
"""Characters: longer values are sought in pieces."""
_TOGETHER = 256
"""Characters of values in one expression."""
_MEMORY = 64 << 20
"""Bytes that one expression may take; much less makes it slow."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_MARKED = MARKER.encode()
_NAMED = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_KEPT_AS_THEY_ARE = frozenset({"type", "media_type"})
"""Fields of content blocks that say how the others are to be read."""


class Echoes:
    """Some masked values, ready to be masked in other texts. False if there is nothing to look for.

    `quoted`: the texts quote the values' beginnings or ends in the middle of a line, as the words of a verdict do.
    """

    def __init__(self, values: Iterable[str], *, quoted: bool = False) -> None:
        self._quoted = quoted
        self._pieces = sorted({piece for value in values if MARKER not in value for piece in _pieces(value)})
        self._too_many = sum(map(len, self._pieces)) > MOST
        self._patterns: list[Any] | None = None

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def text(self, text: str) -> str:
        """The text with each of the values masked."""
        if not self._pieces or not text:
            return text
        if self._too_many:
            return MARKER
        spelled = text.encode("utf-8", "surrogatepass")
        spans: list[tuple[int, int]] = []
        for pattern in self._compiled():
            for found in pattern.finditer(spelled):
                spans.append(found.span())
                if len(spans) > PLACES:
                    return MARKER
        if not spans:
            return text
        shown, at = [], 0
        for start, end in joined(spans):
            shown += [spelled[at:start], _marked(spelled[start:end])]
            at = end
        return b"".join([*shown, spelled[at:]]).decode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:
        """A copy of a JSON value with the values masked in each of its texts, names and numbers."""
        if not self._pieces or not (self._too_many or self._is_in(value)):
            return value
        return self._copy(value)

    def _copy(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): item if name in _KEPT_AS_THEY_ARE else self._copy(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._copy(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and (shown := self.text(str(value))) != str(value):
            return shown
        return value

    def _is_in(self, value: Any) -> bool:
        """True if any text of a JSON value holds any of the values: one search, however many texts there are."""
        spelled = "\n".join(texts_in(value)).encode("utf-8", "surrogatepass")
        return any(pattern.search(spelled) for pattern in self._compiled())

    def _compiled(self) -> list[Any]:
        if self._patterns is None:
            self._patterns = [_compile(group, quoted=self._quoted) for group in _groups(self._pieces)]
        return self._patterns


def _pieces(value: str) -> Iterator[str]:
    """The parts that a value is sought by: its lines, the long ones in pieces, the short ones with the line before them."""
    parts: list[str] = []
    for part in filter(None, _CONTROLS.split(value.strip())):
        if parts and min(len(part), len(parts[-1])) < LEAST:
            parts[-1] += "\n" + part
        else:
            parts.append(part)
    for part in parts:
        if len(part) >= LEAST:
            last = max(len(part) - _PIECE, 0)
            yield from (part[at : at + _PIECE] for at in [*range(0, last, _PIECE), last])


def _groups(pieces: list[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for piece in pieces:
        if group and sum(map(len, group)) + len(piece) > _TOGETHER:
            yield group
            group = []
        group.append(piece)
    yield group


def _compile(pieces: list[str], *, quoted: bool) -> Any:
    together = "|".join(form for piece in pieces for form in _forms(piece, quoted=quoted))
    return compile_re2(f"(?m:{together})".encode("utf-8", "surrogatepass"), max_bytes=_MEMORY, longest=True)


def _forms(piece: str, *, quoted: bool) -> Iterator[str]:
    """Expressions for a piece: whole, cut off at the end of a line, begun before a line, and in other alphabets."""
    line, end_of_line = ("", "") if quoted else ("^(?:[0-9]+[:-])?", "$")
    characters = [_character(character) for character in piece]
    yield "".join(characters)
    if len(piece) > LEAST:
        beginning, end = "", ""
        for character in reversed(characters[LEAST:-1]):
            beginning = f"(?:{character}{beginning})?"
        for character in characters[1:-LEAST]:
            end = f"(?:{end}{character})?"
        yield f"{''.join(characters[:LEAST])}{beginning}{end_of_line}"
        yield f"{line}{end}{''.join(characters[-LEAST:])}"
    data = piece.encode("utf-8", "surrogatepass")
    for shift in range(3):
        yield _in_base64(data, shift)
    yield f"(?i:{'[ :]?'.join(f'{byte:02x}' for byte in data)})"


def _character(character: str) -> str:
    """A character as it is, behind any number of backslashes, or spelled by its number or name."""
    number, data = ord(character), character.encode("utf-8", "surrogatepass")
    units = character.encode("utf-16-be", "surrogatepass")
    forms = [
        r"\\+" if character == "\\" else rf"\\*{escape(character)}",
        f"(?i:{''.join(f'%(?:25)*{byte:02x}' for byte in data)})",
        "(?i:" + "".join(rf"\\+u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)) + ")",
        f"(?i:&(?:amp;)*#(?:0*{number}|x0*{number:x});)",
        rf"(?i:\\+u(?:{number:08x}|\{{0*{number:x}\}}))",
    ]
    if number < 0x100:
        forms.append(rf"(?i:\\+x{number:02x})")
    if character in _NAMED:
        forms.append(f"&(?:amp;)*{_NAMED[character]};")
    if character == " ":
        forms.append(r"\+")
    if character == "\n":
        forms += [r"\\+r?\\*n", r"(?i:%(?:25)*0d%(?:25)*0a)", r"\r\n"]
    if character in "'\"":  # as a shell and as SQL write a quote within quotes
        forms += [rf"{character}\\*{character}{character}", rf"{character}{character}", f"'\"{character}\"'"]
    return f"(?:{'|'.join(forms)})"


def _in_base64(data: bytes, shift: int) -> str:
    """The characters of base64 that depend on these bytes alone, where `shift` bytes of a group of three stand before them."""
    spelled = base64.b64encode(bytes(shift) + data).decode().rstrip("=")
    whole = spelled[(0, 2, 3)[shift] : None if (len(data) + shift) % 3 == 0 else -1]
    return r"\n?".join({"+": "(?:[+-]|%2[bB])", "/": r"(?:\\*/|_|%2[fF])"}.get(sign, sign) for sign in whole)


def _marked(found: bytes) -> bytes:
    """The marker for each line of what was found, so that lines keep their numbers."""
    return re.sub(rb"[^\n]+", _MARKED, found)


def texts_in(value: Any) -> Iterator[str]:
    """Every text, every name of a field and every number in a JSON value."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            todo += [*part, *part.values()]
        elif isinstance(part, list | tuple):
            todo += part
        elif isinstance(part, int | float) and not isinstance(part, bool):
            yield str(part)
