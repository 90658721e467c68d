"""Anchors: what stays of acts that were cut. An anchor is a signed seal of the workspace's chain that names them:

    audit.anchored  {"cut": {chain: [last number, its hash, count]}, "export_sha256": ..., "reason": ..., "before": ...}

`cut` names, by chain, the last act that goes, and how many go. A chain goes on behind its anchor: the next act follows from the
hash there. `export_sha256` is the hash of the verified export that has the acts. The anchor also carries what the acts said about
others: `heads` of chains that stay, and the texts that were `erased` from acts that stay. Anchors are never cut. So that one
verifies by itself among cut acts, it has the hash `before` it.

The table has no authority. It says which anchors wait for the sweep, and where to look for the signed act.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.audit.acts import COLUMNS, link
from models.audit.seal_key import PublicKey
from models.audit.seals import Head, is_signed
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base


@dataclass(frozen=True)
class Cut:
    """The acts of one chain that go behind an anchor: `count` of them, up to the act `last` with `hash`."""

    chain: str
    last: int
    hash: str
    count: int
    """Without the anchors among them, which stay."""


class AuditAnchor(Base):
    """One anchor, by the number of its act."""

    __tablename__ = "audit_anchor"

    workspace_id: Mapped[str] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    cut_to: Mapped[int | None] = mapped_column(sa.BigInteger)
    """The last act of the workspace's own chain that goes behind this anchor; None if it names only sessions' chains."""
    cut_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When the sweep deleted the acts."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.text("assent_now()"))

    __table_args__ = (
        sa.Index("audit_anchor_due", "workspace_id", "seq", postgresql_where=sa.text("cut_at IS NULL")),
        sa.Index("audit_anchor_cut_to", "workspace_id", "seq", postgresql_where=sa.text("cut_to IS NOT NULL")),
    )


@dataclass(frozen=True)
class AnchorAct:
    """The act of an anchor, with its signature: a key's id, and the signature in base64."""

    row: dict[str, Any]
    signature: tuple[str, str] | None

    @property
    def cuts(self) -> list[Cut]:
        """The acts that go behind this anchor, by chain."""
        return cuts_of(self.row["details"])

    @property
    def is_whole(self) -> bool:
        """True if the act has the hash that was signed."""
        return follows_itself(self.row)

    def is_good(self, keys: Iterable[PublicKey] | None) -> bool:
        """True if one of the keys signed this act. Without keys at all, none is asked for."""
        return self.is_whole and (keys is None or is_signed(self.row, self.signature, keys))


def read(db: Db, workspace_id: str, numbers: list[int]) -> list[AnchorAct]:
    """Return the acts of these anchors, in their order."""
    rows = db.rows(_ACTS, chain=workspace_id, numbers=numbers) if numbers else []
    return [
        AnchorAct(dict(zip(COLUMNS, columns, strict=True)), (key_id, signature) if key_id else None)
        for *columns, key_id, signature in rows
    ]


def newest(db: Db, workspace_id: str) -> Head | None:
    """Return the newest anchor, its act's number and hash; None if nothing was cut."""
    acts = read(db, workspace_id, [seq for (seq,) in db.rows(_LAST, workspace=workspace_id)])
    return (acts[0].row["seq"], acts[0].row["hash"]) if acts else None


def pending(db: Db, workspace_id: str) -> dict[str, int]:
    """Return, by chain, the last act that goes behind an anchor whose acts are not deleted yet."""
    numbers = [seq for (seq,) in db.rows(_PENDING, workspace=workspace_id)]
    ends: dict[str, int] = {}
    for anchor in read(db, workspace_id, numbers):
        ends |= {cut.chain: max(cut.last, ends.get(cut.chain, 0)) for cut in anchor.cuts}
    return ends


def cut_point(db: Db, workspace_id: str, keys: Iterable[PublicKey] | None) -> Head | None:
    """Return the last act of the workspace's own chain that an anchor with a good signature lets go; None if none does."""
    for anchor in read(db, workspace_id, [seq for (seq,) in db.rows(_NEWEST, workspace=workspace_id)]):
        if anchor.is_good(keys):
            return next(((cut.last, cut.hash) for cut in anchor.cuts if cut.chain == workspace_id), None)
    return None


def cuts_of(details: Any) -> list[Cut]:
    """Return what an anchor names. Leaves unreadable parts out: Assent wrote none of those."""
    cuts = details.get("cut") if isinstance(details, dict) else None
    if not isinstance(cuts, dict):
        return []
    return [Cut(chain, *cut) for chain, cut in cuts.items() if isinstance(cut, list) and [*map(type, cut)] == [int, str, int]]


def follows_itself(row: dict[str, Any]) -> bool:
    """True if the act of an anchor has the hash that follows from its columns and the hash `before` it."""
    try:
        before = row["details"]["before"]
        return isinstance(before, str) and link(before, row) == row["hash"]
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return False


_ACTS = f"""
    SELECT {", ".join(f"act.{name}" for name in COLUMNS[:-1])}, encode(act.hash, 'hex'), seal.key_id, seal.signature
    FROM audit act LEFT JOIN seal ON seal.workspace_id = act.chain AND seal.seq = act.seq
    WHERE act.chain = %(chain)s AND act.seq = ANY (%(numbers)s) ORDER BY act.seq
"""  # noqa: S608 - names of our own
_LAST = "SELECT seq FROM audit_anchor WHERE workspace_id = %(workspace)s ORDER BY seq DESC LIMIT 1"
_PENDING = "SELECT seq FROM audit_anchor WHERE workspace_id = %(workspace)s AND cut_at IS NULL ORDER BY seq"
_NEWEST = """
    SELECT seq FROM audit_anchor WHERE workspace_id = %(workspace)s AND cut_to IS NOT NULL ORDER BY seq DESC LIMIT 1
"""
