"""Shortens a call's arguments for lists of calls, which have little room for each."""

from typing import Any

from models.pure.json.canonical import spelled

MOST_VALUE = 1000
"""Most characters of one argument in a shortened input."""


def shortened(arguments: dict[str, Any], most: int) -> tuple[dict[str, Any], bool]:
    """Return the arguments, and False if they take more than about `most` characters as JSON and are therefore shortened.

    A shortened argument is a text that ends with the number of characters that are left out. A value that is not a text is cut as
    JSON. Arguments that begin beyond `most` characters are left out.
    """
    shown: dict[str, Any] = {}
    room, is_whole = most, True
    for name, value in arguments.items():
        text = value if isinstance(value, str) else spelled(value)
        if len(name) >= room:
            return shown, False
        room -= len(name)
        if len(text) <= room:
            shown[name] = value
            room -= len(text)
            continue
        kept = min(room, MOST_VALUE)
        shown[name], is_whole = f"{text[:kept]}… ({len(text) - kept} more characters)", False
        room -= kept
    return shown, is_whole
