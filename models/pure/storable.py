"""Values that Postgres can store and a program can walk.

Models and tools return NUL and lone surrogates, which Postgres refuses, and lists in lists in lists, on which a recursive reader
runs out of stack: the worker that judges them, or a page that shows them.
"""

import json
from typing import Any

DEPTH = 60
"""Levels of lists and objects in a call's input or a result's data. A request may have a few more, so that an input that was shown
can come back edited."""
_KEPT = 100
"""Levels of anything that is stored."""


def storable(value: Any, levels: int = _KEPT) -> Any:
    """A JSON value with NUL, lone surrogates and what lies too deep replaced by U+FFFD; equal to `value` where there is none."""
    if isinstance(value, str):
        if value.isprintable():
            return value
        return "".join("\ufffd" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in value)
    if isinstance(value, list):
        return [storable(item, levels - 1) for item in value] if levels else "\ufffd"
    if isinstance(value, dict):
        return {storable(key): storable(item, levels - 1) for key, item in value.items()} if levels else "\ufffd"
    return value


def is_storable(value: Any) -> bool:
    """True if Postgres can store the value as JSON and it has at most DEPTH levels."""
    if is_deep(value):
        return False
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, TypeError, RecursionError):
        return False
    return "\\u0000" not in text


def is_deep(value: Any, levels: int = DEPTH) -> bool:
    """Whether it has more levels of lists and objects."""
    if not isinstance(value, list | dict):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return not levels or any(is_deep(item, levels - 1) for item in inside)
