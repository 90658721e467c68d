"""Canonical JSON (RFC 8785) and its SHA-256. The hash proves that the input that was shown, decided and run is the same."""

import hashlib
import json
from typing import Any

import msgspec
import rfc8785

_EXACT = 2**53 - 1
_encoder = msgspec.json.Encoder(order="sorted")


def canonical(value: Any) -> bytes:
    """Return the RFC 8785 bytes of a JSON value. Raises ValueError for numbers that JSON cannot hold (NaN, above 2**53)."""
    try:
        encoded = _encoder.encode(value)
    except (TypeError, ValueError):
        return rfc8785.dumps(value)
    return encoded if _is_plain(value) else rfc8785.dumps(value)


def _is_plain(value: Any) -> bool:
    """True if JSON with sorted names, as the codec in C writes it, is already canonical for this value. Fractions, and names
    beyond ASCII, follow further rules of RFC 8785."""
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


def canonical_text(value: Any) -> str:
    """Return the canonical text, for display. A value without one, which only a direct write to the database can store, is
    returned as plain JSON."""
    try:
        return canonical(value).decode()
    except (ValueError, RecursionError):
        return json.dumps(value, sort_keys=True)


def is_digest(value: Any, sha256: str) -> bool:
    """True if `sha256` is the value's hash. False for a value that cannot be hashed."""
    try:
        return digest(value) == sha256
    except (ValueError, RecursionError):
        return False


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical bytes, as 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()
