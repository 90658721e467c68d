"""One spelling for each JSON value (RFC 8785), and its hash: what is shown, decided and run is compared by it."""

import hashlib
import json
from typing import Any

import rfc8785


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a JSON value. Raises ValueError on what JSON cannot say exactly (NaN, integers beyond 2**53)."""
    return rfc8785.dumps(value)


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
