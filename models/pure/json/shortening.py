"""Shortens a call's arguments for lists of calls, which have little room for each."""

from typing import Any

from models.pure.json.canonical import canonical_text

MOST_VALUE = 1000
"""Most characters of one argument in a shortened input."""


def shortened(arguments: dict[str, Any], most: int) -> tuple[dict[str, Any], bool]:
    """Return the arguments, and False if they take more than about `most` characters as JSON and are therefore shortened.

    A shortened argument is a text that ends with the number of characters that are left out. A value that is not a text is cut as
    JSON. Arguments that begin beyond `most` characters are left out.
    """
    result: dict[str, Any] = {}
    room, is_whole = most, True
    for name, value in arguments.items():
        text = value if isinstance(value, str) else canonical_text(value)
        if len(name) >= room:
            return result, False
        room -= len(name)
        if len(text) <= room:
            result[name] = value
            room -= len(text)
            continue
        length = min(room, MOST_VALUE)
        result[name], is_whole = f"{text[:length]}… ({len(text) - length} more characters)", False
        room -= length
    return result, is_whole
