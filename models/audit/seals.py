"""Seals: every few seconds the sealer writes the heads of all chains that grew into their workspace's chain, and signs that chain.

    session's chain   1 ── 2 ── 3 ── 4            a session's acts chain on its own row: sessions do not wait for each other
                                │
    workspace's chain 7 ── 8 ── 9: acts.sealed {heads: {sesn_...: [3, hash], ...}, key_id}   and a signature of (9, its hash)

An intruder who writes to the database without the key cannot change or remove the acts under a signed seal unnoticed, nor make the
sealer sign another history (`models.audit.signer`). Acts after the last seal are not protected: `models.audit.verifying` reports
their time. Sealing touches no session's row and waits for no lock: if the workspace's row is locked, the next sweep seals.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.audit import acts, seal_key
from models.audit.principal import system
from models.audit.signer import Signer
from models.database import clock
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction

SEALED = "audit.sealed"
ACTOR = "sweep.seal_audit"

HEADS = 250
"""Chains in one seal: one transaction."""
CHAINS = 20_000
"""Chains in one sweep."""
LATE_SECONDS = 60
"""An act that is committed within so many seconds after its own time is found by the next sweep. Transactions here take less than a
second, and Postgres ends an idle one after 10. The comparison of all chains finds acts that are committed later."""


class Seal(Base):
    """The signature of one act `audit.sealed`. A seal that was made without a key has no row here. Append-only."""

    __tablename__ = "seal"

    workspace_id: Mapped[str] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    """The act's number in the workspace's chain."""
    key_id: Mapped[str]
    signature: Mapped[str]
    """The signature of `seal_key.signed_words`, in base64."""


class Sealed(Base):
    """How far a chain is sealed. Spares the sweep from reading the seals; the verification does not use this table."""

    __tablename__ = "sealed"

    chain: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    seq: Mapped[int] = mapped_column(sa.BigInteger)


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
# LATERAL and LIMIT force a look-up by key for each row: the planner's statistics of tables that grow this fast are outdated.
_GREW = """
    SELECT grew.workspace_id, grew.chain FROM
    (SELECT workspace_id, chain, max(seq) AS seq FROM audit WHERE at > %(since)s GROUP BY workspace_id, chain) grew
    LEFT JOIN LATERAL (SELECT seq FROM sealed WHERE chain = grew.chain LIMIT 1) sealed ON true
    WHERE grew.seq > coalesce(sealed.seq, 0) LIMIT %(chains)s
"""
_BEHIND = """
    SELECT head.workspace_id, head.id FROM
    (SELECT workspace_id, id, audit_seq FROM session UNION ALL SELECT workspace_id, id, audit_seq FROM workspace) head
    LEFT JOIN sealed ON sealed.chain = head.id
    WHERE head.audit_seq > coalesce(sealed.seq, 0) LIMIT %(chains)s
"""
# A session's head stands on its row. For a deleted session, its last act is the head.
_HEADS = """
    SELECT asked.chain, coalesce(head.seq, last.seq) AS seq, encode(coalesce(head.hash, last.hash), 'hex') AS hash
    FROM unnest(CAST(%(chains)s AS text[])) AS asked (chain)
    LEFT JOIN LATERAL (SELECT audit_seq AS seq, audit_head AS hash FROM session WHERE id = asked.chain LIMIT 1) head ON true
    LEFT JOIN LATERAL (
        SELECT seq, hash FROM audit WHERE head.seq IS NULL AND chain = asked.chain ORDER BY seq DESC LIMIT 1
    ) last ON true
    LEFT JOIN LATERAL (SELECT seq FROM sealed WHERE chain = asked.chain LIMIT 1) sealed ON true
    WHERE coalesce(head.seq, last.seq) > coalesce(sealed.seq, 0)
    ORDER BY asked.chain
"""
_REACHED = """
    INSERT INTO sealed (chain, workspace_id, seq)
    SELECT chain, %(workspace)s, seq FROM jsonb_to_recordset(CAST(%(reached)s AS jsonb)) AS reached (chain text, seq bigint)
    ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq
"""


@dataclass(frozen=True)
class Growth:
    """The chains that grew."""

    chains: dict[str, list[str]]
    """By workspace."""
    read_at: datetime
    """The time up to which the search counts."""
    complete: bool
    """False if more chains grew than one sweep takes."""


def grown(since: datetime | None) -> Growth:
    """Return the chains of all workspaces with unsealed acts: those with acts after `since`, or without `since` all."""
    with transaction(role="system") as db:
        if since is None:
            db.write("SET LOCAL statement_timeout = '30s'")
        at = clock.now(db)
        values = {"chains": CHAINS} if since is None else {"chains": CHAINS, "since": since - timedelta(seconds=LATE_SECONDS)}
        rows = db.rows(_BEHIND if since is None else _GREW, **values)
    chains: dict[str, list[str]] = {}
    for workspace_id, chain in rows:
        chains.setdefault(workspace_id, []).append(chain)
    return Growth(chains, at, len(rows) < CHAINS)


def seal(workspace_id: str, chains: list[str], by: Signer) -> bool:
    """Seal those of the workspace's chains that grew, `HEADS` per transaction. Returns False if the workspace's row is locked.

    A workspace whose chain the signer refuses stays unsealed and is added to `by.refused`.
    """
    waiting = iter(sorted(set(chains) - {workspace_id}))
    for batch in iter(lambda: list(islice(waiting, HEADS)), []):
        if not _seal(workspace_id, batch, by):
            return False
    return workspace_id not in chains or _seal(workspace_id, [], by)


def _seal(workspace_id: str, chains: list[str], by: Signer) -> bool:
    written = False
    with transaction(workspace_id) as db:
        # The lock keeps the chain's head still. A second sealer finds no chain that grew.
        locked = db.rows(_LOCK, id=workspace_id)
        if not locked:
            return _is_gone(db, workspace_id, by)
        [head] = locked
        if by.may_sign(db, workspace_id, head):
            heads = {chain: [seq, hash_] for chain, seq, hash_ in db.rows(_HEADS, chains=chains)} if chains else {}
            if heads or (not chains and head[0] > _sealed(db, workspace_id)):
                head = _write(db, workspace_id, heads, by)
                written = True
    if written:
        by.signed(workspace_id, head)
    return True


_LOCK = "SELECT audit_seq, encode(audit_head, 'hex') FROM workspace WHERE id = %(id)s FOR NO KEY UPDATE SKIP LOCKED"


def _is_gone(db: Db, workspace_id: str, by: Signer) -> bool:
    """True if the row is not locked but removed. The signer then refuses the workspace."""
    if db.rows("SELECT FROM workspace WHERE id = %(id)s", id=workspace_id):
        return False
    by.refuse(workspace_id, "the workspace's row is gone")
    return True


def _sealed(db: Db, chain: str) -> int:
    return db.value("SELECT seq FROM sealed WHERE chain = %(chain)s", chain=chain) or 0


def _write(db: Db, workspace_id: str, heads: dict[str, list[Any]], by: Signer) -> tuple[int, str]:
    """Append the seal to the workspace's chain, sign it, and store how far each chain is sealed."""
    key = by.key
    details = {"heads": heads, "key_id": key.public.id if key else None}
    act = acts.record(db, system(ACTOR, workspace_id), SEALED, workspace_id, details)
    seq, head = act["seq"], act["hash"]
    reached = [{"chain": chain, "seq": at[0]} for chain, at in heads.items()] + [{"chain": workspace_id, "seq": seq}]
    db.write(_REACHED, workspace=workspace_id, reached=json.dumps(reached))
    if key:
        signature = key.sign(seal_key.signed_words(workspace_id, seq, head))
        db.insert(Seal(workspace_id=workspace_id, seq=seq, key_id=key.public.id, signature=signature))
    return seq, head
