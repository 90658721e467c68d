"""One spelling for each JSON value (RFC 8785), and its hash: what is shown, decided and run is compared by it."""

import hashlib
from typing import Any

import rfc8785


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a JSON value. Raises ValueError on what JSON cannot say exactly (NaN, integers beyond 2**53)."""
    return rfc8785.dumps(value)


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()
