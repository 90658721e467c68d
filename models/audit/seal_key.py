"""The Ed25519 key that signs the audit's seals. Keys can change: a key's id is the start of its public key's hash.

A private key is 32 bytes in base64, or PEM as `openssl genpkey -algorithm ed25519` writes it; a public key likewise.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from functools import cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from models.settings import settings


@dataclass(frozen=True)
class PublicKey:
    """A public key, with which an auditor checks signatures."""

    raw: bytes
    """32 bytes."""

    @property
    def id(self) -> str:
        """`ed25519:` and 16 hex digits."""
        return f"ed25519:{hashlib.sha256(self.raw).hexdigest()[:16]}"

    @property
    def text(self) -> str:
        """The key in base64."""
        return base64.b64encode(self.raw).decode()

    def has_signed(self, content: bytes, signature: str) -> bool:
        """True if `signature`, in base64, is this key's signature of `content`."""
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(base64.b64decode(signature, validate=True), content)
        except (InvalidSignature, binascii.Error, ValueError):
            return False
        return True


@dataclass(frozen=True)
class SealKey:
    """A private key."""

    key: Ed25519PrivateKey

    def sign(self, content: bytes) -> str:
        """Return the signature of `content`, in base64."""
        return base64.b64encode(self.key.sign(content)).decode()

    @property
    def public(self) -> PublicKey:
        """The public key that belongs to this private key."""
        return PublicKey(self.key.public_key().public_bytes_raw())


def signed_words(workspace_id: str, seq: int, head: str) -> bytes:
    """Return the content that a seal's signature covers: the workspace, the chain's length, and the hash of its last act."""
    return f"assent audit seal 1\n{workspace_id}\n{seq}\n{head}".encode()


def make() -> str:
    """Return a new private key, in base64."""
    return base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode()


def read_private(text: str) -> SealKey:
    """Parse a private key. Raises ValueError on anything but an Ed25519 private key."""
    if "-----BEGIN" in text:
        key = serialization.load_pem_private_key(text.encode(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError("this PEM holds no Ed25519 private key")
        return SealKey(key)
    return SealKey(Ed25519PrivateKey.from_private_bytes(_bytes(text)))


def read_public(text: str) -> PublicKey:
    """Parse a public key. Raises ValueError on anything but an Ed25519 public key."""
    if "-----BEGIN" in text:
        key = serialization.load_pem_public_key(text.encode())
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError("this PEM holds no Ed25519 public key")
        return PublicKey(key.public_bytes_raw())
    return PublicKey(_bytes(text))


def own() -> SealKey | None:
    """Return this installation's key, from `audit_key` or `audit_key_file`. None if neither is set: seals stay unsigned."""
    s = settings()
    if s.audit_key is not None:
        return _own(s.audit_key.get_secret_value())
    return _own(s.audit_key_file.read_text("ascii")) if s.audit_key_file else None


def trusted_keys() -> list[PublicKey]:
    """Return the keys that this installation trusts: the present one, and former ones from `audit_public_keys`."""
    mine = own()
    return [*([mine.public] if mine else []), *(read_public(text) for text in settings().audit_public_keys.split())]


@cache
def _own(text: str) -> SealKey:
    return read_private(text)


def _bytes(text: str) -> bytes:
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        raise ValueError("an Ed25519 key is 32 bytes in base64, or PEM") from None
    if len(raw) != 32:
        raise ValueError(f"an Ed25519 key is 32 bytes in base64, or PEM; these are {len(raw)} bytes")
    return raw
