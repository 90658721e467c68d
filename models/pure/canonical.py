"""One spelling for each JSON value (RFC 8785), and its hash: what is shown, decided and run is compared by it."""

import hashlib
import json
from typing import Any

import msgspec
import rfc8785

_EXACT = 2**53 - 1
_sorted = msgspec.json.Encoder(order="sorted")


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a JSON value. Raises ValueError on what JSON cannot say exactly (NaN, integers beyond 2**53)."""
    try:
        quickly = _sorted.encode(value)
    except (TypeError, ValueError):
        return rfc8785.dumps(value)
    return quickly if _is_plain(value) else rfc8785.dumps(value)


def _is_plain(value: Any) -> bool:
    """Whether any JSON with sorted names is canonical: then it is spelled in C. Numbers with fractions, and names beyond ASCII,
    have rules of their own."""
    todo = [value]
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is dict:
            if not all(type(name) is str and name.isascii() for name in item):
                return False
            todo.extend(item.values())
        elif kind is list:
            todo.extend(item)
        elif kind is int:
            if not -_EXACT <= item <= _EXACT:
                return False
        elif kind is not str and kind is not bool and item is not None:
            return False
    return True


def spelled(value: Any) -> str:
    """The canonical text, to be shown; of a value that has none, which somebody wrote past our doors, its JSON as it is."""
    try:
        return canonical(value).decode()
    except (ValueError, RecursionError):
        return json.dumps(value, sort_keys=True)


def is_digest(value: Any, sha256: str) -> bool:
    """Whether `sha256` is the value's hash; a value that cannot be hashed has none."""
    try:
        return digest(value) == sha256
    except (ValueError, RecursionError):
        return False


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()
