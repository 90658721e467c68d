"""Makes the values of models and tools storable. Postgres refuses NUL and lone surrogates, and deeply nested lists exhaust the
stack of every recursive reader: the worker that judges them, or a page that shows them later."""

from typing import Any

DEPTH = 60
"""Most levels of lists and objects in a call's input or a result's data. A request may have a few more, so that a person can
return an edited input."""
_KEPT = 100
"""Most levels of any stored value."""


def storable(value: Any, levels: int = _KEPT) -> Any:
    """Return a JSON value with NUL, lone surrogates and parts that are nested too deeply replaced by U+FFFD."""
    if isinstance(value, str):
        if value.isprintable():
            return value
        return "".join("\ufffd" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in value)
    if isinstance(value, list):
        return [storable(item, levels - 1) for item in value] if levels else "\ufffd"
    if isinstance(value, dict):
        return {storable(key): storable(item, levels - 1) for key, item in value.items()} if levels else "\ufffd"
    return value


def is_deep(value: Any, levels: int = DEPTH) -> bool:
    """True if the value has more than `levels` levels of lists and objects."""
    if not isinstance(value, list | dict):
        return False
    items = value.values() if isinstance(value, dict) else value
    return not levels or any(is_deep(item, levels - 1) for item in items)
