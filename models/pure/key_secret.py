"""The secret of an API key: 43 random characters of base 62 behind a prefix, and a checksum."""

import hashlib
import secrets
import zlib

PREFIX = "sk-assent-"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM = 43
"""Characters that 32 random bytes take in base 62."""
_CHECK = 6
"""Characters of the CRC-32 that follows. It reveals a typo without a look-up and lets a scanner recognise keys."""


def new_secret() -> str:
    """Return a new secret: `sk-assent-`, 43 random characters and 6 of checksum."""
    body = _base62(int.from_bytes(secrets.token_bytes(32)), _RANDOM)
    return PREFIX + body + _checksum(body)


def well_formed(secret: str) -> bool:
    """True if prefix, length and checksum are right. The secret may still belong to no key."""
    body = secret.removeprefix(PREFIX)
    if not secret.startswith(PREFIX) or len(body) != _RANDOM + _CHECK or not body.isascii():
        return False
    return secrets.compare_digest(_checksum(body[:_RANDOM]), body[_RANDOM:])


def _checksum(body: str) -> str:
    return _base62(zlib.crc32((PREFIX + body).encode()), _CHECK)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def sha256(secret: str) -> str:
    """Return the hash under which a secret is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()
