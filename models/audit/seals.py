"""Seals: acts of a workspace's chain that name the heads of its sessions' chains, each with a signature.

    session's chain   1 ── 2 ── 3 ── 4            a session's acts chain on its own row: sessions do not wait for each other
                                │
    workspace's chain 7 ── 8 ── 9: audit.sealed {heads: {sesn_...: [3, hash], ...}, key_id}   and a signature of (9, its hash)

An intruder who writes to the database without the key cannot change or remove the acts under a signed seal unnoticed. A seal with
`until` also says that no act up to that time is unsealed. `models.audit.sealing` writes seals, `models.audit.coverage` reads how
far the chains are sealed, and `models.audit.verifying` verifies all of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.audit import acts, seal_key
from models.audit.principal import Principal
from models.audit.seal_key import PublicKey, SealKey
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base

Head = tuple[int, str]
"""A chain's length, and the hash of its last act."""

SEALED = "audit.sealed"
ADOPTED = "audit.adopted"
"""A seal by which an operator accepts the audit as it is: see `models.audit.adoption`."""
ANCHORED = "audit.anchored"
"""A seal behind which acts are cut: see `models.audit.anchors`."""
SEALS = (SEALED, ADOPTED, ANCHORED)

LATE_SECONDS = 60
"""An act that is committed within so many seconds after its own time is found by the next sweep. Transactions here take less than a
second, and Postgres ends an idle one after 10. The hourly look at older acts finds acts that are committed later."""


class Seal(Base):
    """The signature of one seal. A seal that was made without a key has no row here. Append-only."""

    __tablename__ = "seal"

    workspace_id: Mapped[str] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    """The act's number in the workspace's chain."""
    key_id: Mapped[str]
    signature: Mapped[str]
    """The signature of `seal_key.signed_words`, in base64."""


@dataclass(frozen=True)
class SignedHead:
    """A seal with its signature. A copy elsewhere shows whether any later state of the audit continues from it."""

    workspace_id: str
    seq: int
    hash: str
    at: datetime
    key_id: str
    signature: str

    @classmethod
    def newest(cls, db: Db, workspace_id: str) -> "SignedHead | None":
        """Return the workspace's last signed seal, without checking its signature."""
        rows = db.rows(_NEWEST, workspace=workspace_id)
        return cls(*rows[0]) if rows else None


_NEWEST = """
    SELECT seal.workspace_id, seal.seq, encode(audit.hash, 'hex'), audit.at, seal.key_id, seal.signature
    FROM seal JOIN audit ON audit.chain = seal.workspace_id AND audit.seq = seal.seq
    WHERE seal.workspace_id = %(workspace)s ORDER BY seal.seq DESC LIMIT 1
"""


def write(db: Db, principal: Principal, action: str, key: SealKey | None, details: dict[str, Any]) -> dict[str, Any]:
    """Append a seal to the chain of the principal's workspace, sign it if there is a key, and return the act's columns."""
    workspace_id = principal.workspace_id
    act = acts.record(db, principal, action, workspace_id, details | {"key_id": key.public.id if key else None})
    if key:
        signature = key.sign(seal_key.signed_words(workspace_id, act["seq"], act["hash"]))
        db.insert(Seal(workspace_id=workspace_id, seq=act["seq"], key_id=key.public.id, signature=signature))
    return act


def heads_of(details: Any) -> dict[str, Head]:
    """Return the heads that a seal names, by chain. Leaves unreadable ones out: Assent wrote none of those."""
    heads = details.get("heads") if isinstance(details, dict) else None
    if not isinstance(heads, dict):
        return {}
    return {chain: (head[0], head[1]) for chain, head in heads.items() if is_head(head)}


def is_head(value: Any) -> bool:
    """True if the value, from JSON, is a chain's length and hash."""
    return isinstance(value, list) and [type(part) for part in value] == [int, str]


def until_of(details: Any) -> datetime | None:
    """Return the time up to which a seal says that all of its workspace's acts are sealed, or None if the seal says nothing."""
    try:
        until = datetime.fromisoformat(details["until"])
    except (KeyError, TypeError, ValueError):
        return None
    return until if until.tzinfo else None


def is_signed(act: dict[str, Any], signature: tuple[str, str] | None, keys: Iterable[PublicKey]) -> bool:
    """True if one of the keys signed this seal, and the seal names that key. `signature` is a key's id and the signature."""
    key_id, text = signature or ("", "")
    named_key = act["details"].get("key_id") if isinstance(act["details"], dict) else None
    words = seal_key.signed_words(act["chain"], act["seq"], act["hash"])
    return any(key.id == key_id == named_key and key.has_signed(words, text) for key in keys)
