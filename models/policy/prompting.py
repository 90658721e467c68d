"""The prompt above a call that a person reads: the tool's template, filled with the call's arguments."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from models.pure.text.visible import visible_lines

_FIELD = re.compile(r"\{(/?[\w.~/-]+)\}")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_LONGEST = 2000
_LONGEST_VALUE = 1000
_MISSING = object()


def fill(template: str, name: str, arguments: dict[str, Any]) -> str:
    """Return `template` with `{tool}` and each `{argument}` replaced. Pass the arguments as `masking.mask` returns them.

    A field is the name of an argument, a dotted path into one (`{options.path}`, `{files.0}`) or a JSON Pointer (`{/options}`).
    A field without a value stays in braces. Braces inside a value are never read as a field, and no argument can replace `{tool}`.

    Control characters, and characters that reverse or hide text, become escapes. A value shows at most 1000 characters, the whole
    prompt 2000, and each cut says how much is missing. The complete input is always shown beside the prompt.
    """
    parts, room, left_out = [], _LONGEST, 0
    for text, longest in _pieces(template, name, arguments):
        start, length = _start(text, min(longest, room))
        room -= len(start)
        parts.append(start)
        if length < len(text) and longest <= room + len(start):
            parts.append(_left_out(len(text) - length))
        elif length < len(text):
            room, left_out = 0, left_out + len(text) - length
    return "".join(parts) + (_left_out(left_out) if left_out else "")


def _pieces(template: str, name: str, arguments: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the template's own text and the values between, each with the number of characters that it may show."""
    at = 0
    for field in _FIELD.finditer(template):
        yield template[at : field.start()], _LONGEST
        value = name if field[1] == "tool" else _look_up(field[1], arguments)
        if value is _MISSING:
            value = field[0]
        yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _LONGEST_VALUE
        at = field.end()
    yield template[at:], _LONGEST


def _start(text: str, longest: int) -> tuple[str, int]:
    """Return the start of a text that takes at most `longest` characters when shown, and how many of its characters that is."""
    visible_text = visible_lines(text[:longest])
    if len(visible_text) <= longest:
        return visible_text, min(len(text), longest)
    ends = list(accumulate(len(visible_lines(character)) for character in text[:longest]))
    length = bisect_right(ends, longest)
    return visible_lines(text[:length]), length


def _left_out(characters: int) -> str:
    return f"… ({characters} more characters: see the input)"


def _look_up(field: str, arguments: dict[str, Any]) -> Any:
    if field in arguments:
        return arguments[field]
    parts = [part.replace("~1", "/").replace("~0", "~") for part in field[1:].split("/")] if field[0] == "/" else field.split(".")
    value: Any = arguments
    for part in parts:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value
