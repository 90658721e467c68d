"""The keys of push messages: P-256, by which a browser knows who sends (RFC 8292)."""

import base64
import secrets

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from models.settings.key_text import raw_key

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The number of the curve's points."""


def new_keys() -> tuple[str, str]:
    """Return a new private key, 32 bytes in base64, and its public key as browsers take it."""
    private = base64.b64encode((1 + secrets.randbelow(_ORDER - 1)).to_bytes(32)).decode()
    return private, public_of(private)


def public_of(private: str) -> str:
    """Return the public key of a private key: a point in base64 for URLs. Raises ValueError."""
    key = ec.derive_private_key(int.from_bytes(raw_key(private)), ec.SECP256R1())
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64.urlsafe_b64encode(point).rstrip(b"=").decode()
