"""The audit's acts: principal, action, subject, time, details, address. Rows are append-only. Each hash covers the row before it.

The head of a session's chain is on the session's row, which is locked anyway. The head of the chain for acts outside sessions is
on the workspace's row. An intruder who can write to the database could rebuild a chain: `models.audit.seals` signs the
heads, and `models.audit.verifying` detects the change.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.audit.principal import Principal
from models.audit.text import AuditText, Text, split
from models.database import clock
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base, Hex
from models.pure.json.canonical import canonical

GENESIS = ""
CLIENT_ADDRESS = "client_address"
"""The text with the network address of a person who acts. The address of a program, with its API key, is in the act itself."""
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
"""A time before all acts."""
ROUTINE = (
    *("audit.sealed", "grant.used", "work.offered", "work.stopped"),
    *("tool_call.allowed", "tool_call.cached", "tool_call.finished", "tool_call.lost", "tool_call.not_begun", "tool_call.started"),
    *("turn.failed", "turn.fell_back", "turn.folded", "turn.lost", "turn.started"),
)
"""Acts that come with each turn, call or seal. The page of the audit folds them."""
FREQUENT = (
    *("approval.decided", "approval.reminded", "approval.requested", "approval.voted"),
    *("message.received", "message.sent_to_thread", "session.created", "thread.created", "tool_call.denied"),
)
"""Acts that come with each run or decision."""


def _but(*actions: str) -> str:
    return f"action NOT IN ({', '.join(repr(action) for action in actions)})"


TOLD, RARE = _but(*ROUTINE), _but(*ROUTINE, *FREQUENT)
"""The conditions of two indexes: all acts but routine ones, and of these all but frequent ones."""


class Audit(Base):
    """One act. The running roles may only insert and read."""

    __tablename__ = "audit"

    chain: Mapped[str] = mapped_column(primary_key=True)
    """A session's id, or a workspace's."""
    seq: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    workspace_id: Mapped[str]
    at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    principal: Mapped[str]
    """`kind:id` of the principal that acted."""
    address: Mapped[str | None]
    """The network address of an API key's request. A person's is a text, `CLIENT_ADDRESS`; up to version 0.2 it is here, too."""
    action: Mapped[str]
    """Noun and past participle: `approval.decided`, `tool_call.started`."""
    subject_id: Mapped[str]
    details: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """Ids, numbers, times, digests and constant texts. Other texts are salted digests under `texts`: see `models.audit.text`."""
    hash: Mapped[str] = mapped_column(Hex)
    """SHA-256, in hex, of the previous act's hash and the canonical JSON of this row."""

    # No index of all acts by workspace, because every insert would pay for it. The one by time is small, because acts are stored
    # in the order of time; the two others leave out the acts of which there are most.
    __table_args__ = (
        sa.Index("audit_at", "at", postgresql_using="brin", postgresql_with={"pages_per_range": 32, "autosummarize": True}),
        sa.Index("audit_told", "workspace_id", "at", postgresql_where=sa.text(TOLD)),
        sa.Index("audit_rare", "workspace_id", "at", postgresql_where=sa.text(RARE)),
    )


class Chain(Protocol):
    """A row that carries the head of an audit chain."""

    id: Any
    audit_seq: Any
    audit_head: Any


@dataclass
class WorkspaceChain:
    """The head of a workspace's chain, locked until the transaction ends."""

    id: str
    audit_seq: int
    audit_head: str

    @classmethod
    def lock(cls, db: Db, workspace_id: str) -> "WorkspaceChain":
        """Lock the workspace's row and read the head under the lock."""
        [head] = db.rows(_LOCK_HEAD, id=workspace_id)
        return cls(*head)


_LOCK_HEAD = "SELECT id, audit_seq, encode(audit_head, 'hex') FROM workspace WHERE id = %(id)s FOR NO KEY UPDATE"
_MOVE_HEAD = "UPDATE workspace SET audit_seq = %(seq)s, audit_head = decode(%(head)s, 'hex') WHERE id = %(id)s"


def record(db: Db, principal: Principal, action: str, subject_id: str, details: dict[str, Any]) -> dict[str, Any]:
    """Lock the principal's workspace, append an act outside sessions to its chain, and return the act's columns.

    Pass a detail that a person wrote as `Text`, so that it can be erased.
    """
    head = WorkspaceChain.lock(db, principal.workspace_id)
    act, texts = entry(head, principal, action, subject_id, details, clock.now(db))
    db.write(_MOVE_HEAD, id=head.id, seq=head.audit_seq, head=head.audit_head)
    db.insert_many(Audit, [act])
    db.insert_many(AuditText, texts)
    return act


def entry(
    chain: Chain, principal: Principal, action: str, subject_id: str, details: dict[str, Any], at: datetime
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the columns of the next act of `chain`, and those of its texts. The act becomes the chain's head. The caller holds
    the lock on the chain's row."""
    seq = chain.audit_seq + 1
    if principal.through:
        details = details | {"through": principal.through}
    person_address = principal.kind == "user" and principal.address
    if person_address:
        details = details | {CLIENT_ADDRESS: Text(person_address, about=principal.id)}
    details, texts = split(chain.id, seq, principal.workspace_id, details)
    columns = {
        "chain": chain.id,
        "seq": seq,
        "workspace_id": principal.workspace_id,
        "at": at,
        "principal": str(principal),
        "address": None if person_address else principal.address,
        "action": action,
        "subject_id": subject_id,
        "details": details,
    }
    chain.audit_seq, chain.audit_head = seq, link(chain.audit_head, columns)
    return columns | {"hash": chain.audit_head}, texts


def link(before: str, act: Audit | dict[str, Any]) -> str:
    """Return the hash of an act, a row or its columns, that follows the act with hash `before`."""
    columns = {key: act[key] if isinstance(act, dict) else getattr(act, key) for key in _HASHED}
    return hashlib.sha256(before.encode() + canonical(columns | {"at": time_text(columns["at"])})).hexdigest()


def time_text(at: datetime) -> str:
    """Return an act's time in the form that is hashed: UTC, whatever the connection's time zone."""
    return at.astimezone(UTC).isoformat()


COLUMNS = tuple(Audit.__table__.columns.keys())
"""The columns of an act. The last one is its hash."""
_HASHED = COLUMNS[:-1]
