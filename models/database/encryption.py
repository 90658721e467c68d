"""Secrets in rows: any process encrypts them with a public key, and only the process that uses them can decrypt them.

Each kind of process that uses secrets has a key pair of its own, so that a turn cannot read the secrets of a webhook. The scheme is
HPKE (RFC 9180) with X25519, HKDF-SHA256 and ChaCha20-Poly1305. A ciphertext is `KEYID.BASE64`. It is bound to the id of its row:
copied into another row it cannot be decrypted.
"""

import base64
import hashlib
from functools import cache
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import SecretStr

from models.errors import Conflict
from models.settings import settings
from models.settings.key_text import raw_key

Reader = Literal["deliver", "turns", "archive"]
"""Who can decrypt: a kind of process or, for the archive, every process that reads it."""

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


class Undecryptable(Exception):
    """This process lacks the private key of a ciphertext, or the ciphertext was changed or belongs to another row."""


def new_keys() -> tuple[str, str]:
    """Return a new private key and its public key, each 32 bytes in base64."""
    key = X25519PrivateKey.generate()
    return _encoded(key.private_bytes_raw()), _encoded(key.public_key().public_bytes_raw())


def public_of(private: str) -> str:
    """Return the public key of a private key. Raises ValueError."""
    key = X25519PrivateKey.from_private_bytes(raw_key(private))
    return _encoded(key.public_key().public_bytes_raw())


def encrypt(reader: Reader, text: str, row_id: str) -> str:
    """Return the ciphertext of `text` for `reader`, bound to the row. Raises Conflict if this process has no public key."""
    key_id, ciphertext = _encrypted(reader, text.encode(), row_id)
    return f"{key_id}.{_encoded(ciphertext)}"


def encrypt_bytes(reader: Reader, content: bytes, row_id: str) -> bytes:
    """Return the ciphertext of `content` as `encrypt` does, as bytes: `KEYID.` and the raw ciphertext."""
    key_id, ciphertext = _encrypted(reader, content, row_id)
    return key_id.encode() + b"." + ciphertext


def decrypt(reader: Reader, ciphertext: str, row_id: str) -> str:
    """Return the text of a ciphertext. Raises Undecryptable."""
    key_id, _, content = ciphertext.partition(".")
    try:
        return _decrypted(reader, key_id, base64.b64decode(content, validate=True), row_id).decode()
    except ValueError:
        raise _undecryptable(row_id) from None


def decrypt_bytes(reader: Reader, ciphertext: bytes, row_id: str) -> bytes:
    """Return the content of a ciphertext of `encrypt_bytes`. Raises Undecryptable."""
    key_id, _, content = ciphertext.partition(b".")
    return _decrypted(reader, key_id.decode("ascii", "replace"), content, row_id)


def _encrypted(reader: Reader, content: bytes, row_id: str) -> tuple[str, bytes]:
    """Return the id of the public key, and the ciphertext."""
    raw = _public_key(reader)
    if not raw:
        variable = f"ASSENT_{reader.upper()}_PUBLIC_KEY"
        raise Conflict(f"Secrets cannot be stored: {variable} is not set. `assent secrets keys` makes a pair of keys.")
    return _key_id(raw), _SUITE.encrypt(content, X25519PublicKey.from_public_bytes(raw), info=_bound_to(row_id))


def _decrypted(reader: Reader, key_id: str, ciphertext: bytes, row_id: str) -> bytes:
    key = _private_keys(reader).get(key_id)
    if key is None:
        raise Undecryptable(f"ASSENT_{reader.upper()}_PRIVATE_KEYS holds no private key for the public key {key_id}.")
    try:
        return _SUITE.decrypt(ciphertext, key, info=_bound_to(row_id))
    except (InvalidTag, ValueError):
        raise _undecryptable(row_id) from None


def _undecryptable(row_id: str) -> Undecryptable:
    return Undecryptable(f"The secret of {row_id} was changed, or belongs to another row.")


def can_encrypt(reader: Reader) -> bool:
    """True if this process has the public key."""
    return bool(_public_key(reader))


def is_current(reader: Reader, ciphertext: str | bytes) -> bool:
    """True if the ciphertext was made with the present public key."""
    beginning = f"{_key_id(_public_key(reader))}."
    return ciphertext.startswith(beginning.encode()) if isinstance(ciphertext, bytes) else ciphertext.startswith(beginning)


def _public_key(reader: Reader) -> bytes:
    text: str = getattr(settings(), f"{reader}_public_key")
    return raw_key(text) if text else b""


def _private_keys(reader: Reader) -> dict[str, X25519PrivateKey]:
    texts: SecretStr | None = getattr(settings(), f"{reader}_private_keys")
    return _read_keys(texts.get_secret_value() if texts else "")


@cache
def _read_keys(texts: str) -> dict[str, X25519PrivateKey]:
    keys = [X25519PrivateKey.from_private_bytes(raw_key(text)) for text in texts.split()]
    return {_key_id(key.public_key().public_bytes_raw()): key for key in keys}


def _key_id(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:16]


def _bound_to(row_id: str) -> bytes:
    return f"assent secret 1\n{row_id}".encode()


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
