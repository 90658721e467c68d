"""What a model or a tool says may hold what Postgres cannot: NUL and lone surrogates."""

from typing import Any


def storable(value: Any) -> Any:
    """A JSON value with NUL and lone surrogates replaced by U+FFFD; equal to `value` where there are none."""
    if isinstance(value, str):
        if "\x00" not in value and value.isprintable():
            return value
        return "".join("\ufffd" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value
