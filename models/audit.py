"""The audit: who did what, when, by which rule, from where. Append-only rows, each hashed over the one before it in its chain.

A session's acts chain on the session's row, which is locked anyway; acts outside sessions chain on the workspace's row. What is
chained can be made anew by who can write to the database: `models.seal` signs the heads, `models.auditing` finds what was done.
"""

import hashlib
from datetime import UTC, datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models import clock
from models.audit_text import ERASED, AuditText, Erasure, remove, split
from models.db import Base, Db
from models.errors import Invalid, NotFound
from models.principal import Principal
from models.pure.canonical import canonical
from models.workspace import Workspace

GENESIS = ""


class Audit(Base):
    """One act. The running roles may insert and read, nothing else."""

    __tablename__ = "audit"

    chain: Mapped[str] = mapped_column(primary_key=True)
    """A session's id, or a workspace's."""
    seq: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    workspace_id: Mapped[str]
    at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    principal: Mapped[str]
    """`kind:id` of who acted."""
    address: Mapped[str | None]
    action: Mapped[str]
    """Noun and past participle: `approval.decided`, `tool_call.started`."""
    subject_id: Mapped[str]
    details: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """Ids, numbers, times, digests and our own words. Other texts are salted digests under `texts`: see `models.audit_text`."""
    hash: Mapped[str]
    """SHA-256, hex, of the hash before it and the canonical JSON of this row."""

    # No other index: every act would pay for it. This one is a few bytes for many pages of acts, which lie in their time's order.
    __table_args__ = (
        sa.Index("audit_at", "at", postgresql_using="brin", postgresql_with={"pages_per_range": 16, "autosummarize": True}),
    )


class Chain(Protocol):
    """A row that carries the head of an audit chain."""

    id: Any
    audit_seq: Any
    audit_head: Any


def record(
    db: Db, principal: Principal, action: str, subject_id: str, details: dict[str, Any], *, chain: Chain | None = None
) -> None:
    """Append an act outside sessions to the chain of the principal's workspace, whose row is locked here unless it is given.

    A detail that somebody wrote is given as `Text`, so that it can be erased.
    """
    if chain is None:
        db.flush()  # the head may have moved in this transaction already
        chain = db.get_one(Workspace, principal.workspace_id, with_for_update={"key_share": True}, populate_existing=True)
    act, texts = entry(chain, principal, action, subject_id, details, clock.now(db))
    db.add(Audit(**act))
    db.add_all(AuditText(**text) for text in texts)


def entry(
    chain: Chain, principal: Principal, action: str, subject_id: str, details: dict[str, Any], at: datetime
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The columns of an act that follows `chain`'s head, which it becomes, and those of its texts. The chain's row is locked."""
    seq = chain.audit_seq + 1
    details, texts = split(chain.id, seq, principal.workspace_id, details)
    columns = {
        "chain": chain.id,
        "seq": seq,
        "workspace_id": principal.workspace_id,
        "at": at,
        "principal": str(principal),
        "address": principal.address,
        "action": action,
        "subject_id": subject_id,
        "details": details,
    }
    chain.audit_seq, chain.audit_head = seq, link(chain.audit_head, columns)
    return columns | {"hash": chain.audit_head}, texts


def erase(db: Db, principal: Principal, *, chain: str | None = None, seq: int | None = None, by: str | None = None) -> Erasure:
    """Erase the texts of acts and say so in the audit: those of a chain, of one act in it, of a principal, or of both together.

    One call erases those of up to 1000 acts. Raises Invalid if neither `chain` nor `by` is given, or `seq` without
    `chain`; NotFound for a chain without acts.
    """
    if chain is None and by is None:
        raise Invalid("chain", "name a chain or a principal: what is erased is gone.")
    if chain is None and seq is not None:
        raise Invalid("seq", "is the number of an act in a chain: name the chain.")
    if chain is not None and db.scalar(sa.select(Audit.seq).where(Audit.chain == chain).limit(1)) is None:
        raise NotFound("chain", chain)
    erasure = remove(db, chain, seq, by)
    if erasure.acts:
        record(db, principal, ERASED, principal.workspace_id, {"acts": erasure.acts, "texts_erased": erasure.texts})
    return erasure


def link(before: str, act: Audit | dict[str, Any]) -> str:
    """The hash of an act, a row or its columns, after the one with hash `before`."""
    said = {key: act[key] if isinstance(act, dict) else getattr(act, key) for key in _HASHED}
    return hashlib.sha256(before.encode() + canonical(said | {"at": spelled(said["at"])})).hexdigest()


def spelled(at: datetime) -> str:
    """An act's time as it is hashed: in UTC, whatever time zone the database's connection has."""
    return at.astimezone(UTC).isoformat()


_HASHED = tuple(key for key in Audit.__table__.columns.keys() if key != "hash")  # noqa: SIM118 - a collection of columns
