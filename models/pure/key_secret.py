"""The secret of an API key: 43 random characters of base 62 behind a prefix, and a checksum."""

import hashlib
import secrets
import zlib

PREFIX = "sk-assent-"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM = 43
"""Characters that 32 random bytes take in base 62."""
_CHECK = 6
"""Characters of the CRC-32 behind them: a typo is known without a look-up, a scanner can tell a key from noise."""


def new_secret() -> str:
    """A secret such as `sk-assent-` and 49 characters: 43 random, 6 of checksum."""
    body = _base62(int.from_bytes(secrets.token_bytes(32)), _RANDOM)
    return PREFIX + body + _checksum(body)


def well_formed(secret: str) -> bool:
    """Whether this could be a secret of ours: prefix, length and checksum. Says nothing of whether it is one."""
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
    """A secret as it is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()
