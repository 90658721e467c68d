"""Masks the values of a call's input, where they appear again in its result, its output or its questions.

Recognises a value as written, and in the usual encodings: with backslashes, in JSON (also nested), percent-encoded, as HTML or XML,
in base64 (any alignment, with line ends) and in hexadecimal digits. In a text that was cut or broken into lines, a part of at least
LEAST characters at the end or the beginning of a line is recognised as well. Compressed, encrypted, reversed or otherwise
transformed values are not recognised.

The search is linear in the text: values are combined into a few expressions of bounded size. Beyond MOST characters of values, or
PLACES hits in one text, the whole text is masked.
"""

import base64
import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from models.pure import ahead
from models.pure.masking.texts import MARKER, merged
from models.pure.regex import compile_re2, escape

LEAST = 8
"""Shortest value in characters. Shorter ones would match everywhere."""
MOST = 4_096
"""Characters of all values together."""
PLACES = 20_000
_PIECE = 64
"""Characters of one piece. Longer values are searched in pieces."""
_TOGETHER = 256
"""Characters of values in one expression."""
_MEMORY = 64 << 20
"""Bytes that one expression may take. Much less makes it slow."""
_SECONDS = 0.00015
"""CPU time in which one character of a value is compiled. Nothing can interrupt that."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_MARKED = MARKER.encode()
_NAMED = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_KEPT_AS_THEY_ARE = frozenset({"type", "media_type"})
"""Fields of content blocks that describe the others, and are not masked."""


class Echoes:
    """Masked values, compiled to be masked in other texts. False without values.

    `values` is read only when a text could hold one of them.

    `may_quote`: the texts may quote the beginning or end of a value in the middle of a line, as a verdict's reason does.
    """

    def __init__(self, values: Iterable[str], *, may_quote: bool = False) -> None:
        self._values = values
        self._may_quote = may_quote

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @functools.cached_property
    def _pieces(self) -> list[str]:
        return sorted({piece for value in self._values if MARKER not in value for piece in _pieces(value)})

    def text(self, text: str) -> str:
        """Return the text with each of the values masked."""
        if len(text) < LEAST or not self._pieces:
            return text
        if sum(map(len, self._pieces)) > MOST:
            return MARKER
        data = text.encode("utf-8", "surrogatepass")
        spans: list[tuple[int, int]] = []
        for pattern in self._patterns:
            for match in pattern.finditer(data):
                spans.append(match.span())
                if len(spans) > PLACES:
                    return MARKER
        if not spans:
            return text
        parts, at = [], 0
        for start, end in merged(spans):
            parts += [data[at:start], _mask_lines(data[start:end])]
            at = end
        return b"".join([*parts, data[at:]]).decode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:
        """Return a copy of a JSON value with the values masked in each text, name and number."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): item if name in _KEPT_AS_THEY_ARE else self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and (masked_text := self.text(str(value))) != str(value):
            return masked_text
        return value

    @functools.cached_property
    def _patterns(self) -> list[Any]:
        return _compile_groups(self._pieces, may_quote=self._may_quote)


def _pieces(value: str) -> Iterator[str]:
    """Yield the parts by which a value is searched: its lines, long ones in pieces, short ones with the line before."""
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


@ahead.costly
def _compile_groups(pieces: list[str], *, may_quote: bool) -> list[Any]:
    ahead.require(sum(map(len, pieces)) * _SECONDS)
    return [_compile(group, may_quote=may_quote) for group in _groups(pieces)]


def _groups(pieces: list[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for piece in pieces:
        if group and sum(map(len, group)) + len(piece) > _TOGETHER:
            yield group
            group = []
        group.append(piece)
    yield group


def _compile(pieces: list[str], *, may_quote: bool) -> Any:
    together = "|".join(form for piece in pieces for form in _forms(piece, may_quote=may_quote))
    return compile_re2(f"(?m:{together})".encode("utf-8", "surrogatepass"), max_bytes=_MEMORY, longest=True)


def _forms(piece: str, *, may_quote: bool) -> Iterator[str]:
    """Yield expressions for a piece: complete, cut at the end of a line, begun on the line before, and in other encodings."""
    line, end_of_line = ("", "") if may_quote else ("^(?:[0-9]+[:-])?", "$")
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
    """Return an expression for a character: as written, after any number of backslashes, or by its number or name."""
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
    """Return the base64 characters that depend only on these bytes, if `shift` bytes of a group of three stand before them."""
    base64_text = base64.b64encode(bytes(shift) + data).decode().rstrip("=")
    whole = base64_text[(0, 2, 3)[shift] : None if (len(data) + shift) % 3 == 0 else -1]
    return r"\n?".join({"+": "(?:[+-]|%2[bB])", "/": r"(?:\\*/|_|%2[fF])"}.get(sign, sign) for sign in whole)


def _mask_lines(secret: bytes) -> bytes:
    """Return one marker per line of the secret, so that lines keep their numbers."""
    return re.sub(rb"[^\n]+", _MARKED, secret)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text, every name of a field and every number in a JSON value."""
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
