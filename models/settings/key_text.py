"""Keys as text: 32 bytes in base64."""

import base64
import binascii

_KEY_BYTES = 32


def key_text(text: str) -> str:
    """Return the text of a key without spaces around it. Raises ValueError unless it is 32 bytes in base64."""
    raw_key(text)
    return text.strip()


def raw_key(text: str) -> bytes:
    """Return the bytes of a key. Raises ValueError, whose message does not show the text."""
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        raise ValueError("a key is 32 bytes in base64; `assent secrets keys` makes a pair") from None
    if len(raw) != _KEY_BYTES:
        raise ValueError(f"a key is 32 bytes in base64; these are {len(raw)} bytes")
    return raw
