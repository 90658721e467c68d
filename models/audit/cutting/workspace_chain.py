"""Anchors for a workspace's own chain: from its beginning up to the last act that is old, sealed, and says nothing that must stay.

Its seals speak of sessions' chains. Where such a chain stays, and no later seal names it, the anchor carries its head; likewise the
texts that were erased from acts that stay. It never passes the deletion of a session whose chain is still there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from models.audit import anchors, legal_hold
from models.audit.acts import COLUMNS, GENESIS, link
from models.audit.anchors import Cut
from models.audit.cutting.export import ACTS, CHAINS, VerifiedExport
from models.audit.cutting.terms import Carried, Terms
from models.audit.seals import ANCHORED, SEALS, Head, heads_of
from models.audit.text import ERASED
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Conflict

DELETED = "session.deleted"
_CARRIED = CHAINS
"""Most heads, and most acts with erased texts, that one anchor carries, but for those of its first act."""
_NEXT = f"""
    SELECT {", ".join(COLUMNS[:-1])}, encode(hash, 'hex') FROM audit
    WHERE chain = %(chain)s AND seq > %(seq)s ORDER BY seq LIMIT %(limit)s
"""  # noqa: S608 - names of our own
_LENGTHS = """
    SELECT asked.chain, (SELECT max(seq) FROM audit WHERE chain = asked.chain)
    FROM unnest(CAST(%(chains)s AS text[])) AS asked (chain)
"""
_ANCHORS = "SELECT seq FROM audit_anchor WHERE workspace_id = %(workspace)s"
_FROM = "SELECT seq FROM audit_anchor WHERE workspace_id = %(workspace)s AND cut_to IS NOT NULL ORDER BY seq DESC LIMIT 1"


def anchor(export: VerifiedExport, terms: Terms) -> None:
    """Write the anchors for the workspace's own chain, each in a transaction of its own."""
    while _anchor_next(export, terms):
        pass


def _anchor_next(export: VerifiedExport, terms: Terms) -> bool:
    """Write the next anchor. Returns False if nothing more may be cut."""
    with transaction(terms.workspace_id) as db:
        head = terms.lock(db)
        legal_hold.refuse(db)
        prefix = _Prefix(export, _end_of_last(db, terms.workspace_id), anchors.pending(db, terms.workspace_id))
        prefix.read(db)
        if not prefix.count:
            return False
        cut = Cut(terms.workspace_id, prefix.seq, prefix.hash, prefix.count)
        act = terms.write(db, head, [cut], Carried(prefix.heads, prefix.erased))
    terms.keep(act)
    return True


def _end_of_last(db: Db, workspace_id: str) -> Head:
    """Return the end of the acts of the workspace's chain that go behind anchors so far."""
    for act in anchors.read(db, workspace_id, [seq for (seq,) in db.rows(_FROM, workspace=workspace_id)]):
        return next((cut.last, cut.hash) for cut in act.cuts if cut.chain == workspace_id)
    return 0, GENESIS


@dataclass
class _Prefix:
    """The acts that go behind the next anchor, up to the one that was read last."""

    export: VerifiedExport
    end: Head
    ends: dict[str, int]
    """By chain, the last act that goes behind an earlier anchor and may still be there."""
    count: int = 0
    heads: dict[str, Head] = field(default_factory=dict)
    erased: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    """The last acts of the chains that the acts speak of; a chain that is gone is not among them."""
    anchors: frozenset[int] = frozenset()
    """The numbers of all anchors."""

    @property
    def seq(self) -> int:
        """The number of the last act."""
        return self.end[0]

    @property
    def hash(self) -> str:
        """The hash of the last act."""
        return self.end[1]

    def read(self, db: Db) -> None:
        """Take acts while they may go. Raises Conflict for a broken chain, or one that is not the export's."""
        rows = db.rows(_NEXT, chain=self.export.workspace_id, seq=self.seq, limit=ACTS)
        acts = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        chains = sorted({chain for act in acts for chain in _chains_of(act)})
        self.lengths = {chain: length for chain, length in db.rows(_LENGTHS, chains=chains) if length}
        self.anchors = frozenset(seq for (seq,) in db.rows(_ANCHORS, workspace=self.export.workspace_id))
        for act in acts:
            hash_in_export = self.export.own_hash(act["seq"])
            if hash_in_export is None or not self._take(act):
                break
            if act["seq"] != self.seq + 1 or link(self.hash, act) != act["hash"] or hash_in_export != act["hash"]:
                raise Conflict(f"Act {act['seq']} of {act['chain']} is not the one in the export: run `assent audit verify`.")
            self.end = (act["seq"], act["hash"])
            self.count += act["action"] != ANCHORED

    def _take(self, act: dict[str, Any]) -> bool:
        """Carry what the act says about acts that stay. Returns False if the act must stay."""
        if act["action"] == DELETED:
            return not self._stays(act["subject_id"])
        heads, erased = self._heads(act), self._erased(act)
        carries = len(self.heads) + sum(len(seqs) for chains in self.erased.values() for seqs in chains.values())
        if self.count and carries + len(heads) + sum(map(len, erased.values())) > _CARRIED:
            return False
        self.heads |= heads
        for chain, seqs in erased.items():
            self.erased.setdefault(act["principal"], {}).setdefault(chain, []).extend(seqs)
        return True

    def _heads(self, act: dict[str, Any]) -> dict[str, Head]:
        """Return the heads of chains that stay and that no later seal names. Anchors stay themselves."""
        if act["action"] not in SEALS or act["action"] == ANCHORED:
            return {}
        heads = {}
        for chain in heads_of(act["details"]):
            newest = self.export.sealed_head(chain)
            if newest and newest.seal == act["seq"] and self._stays(chain):
                heads[chain] = (newest.seq, newest.hash)
        return heads

    def _erased(self, act: dict[str, Any]) -> dict[str, list[int]]:
        """Return the acts that stay and whose texts this act says are erased."""
        acts = act["details"].get("acts") if act["action"] == ERASED else None
        if not isinstance(acts, dict):
            return {}
        own = self.anchors.intersection(acts.get(self.export.workspace_id, ()))
        stay = {chain: seqs for chain, seqs in acts.items() if chain != self.export.workspace_id and self._stays(chain)}
        return stay | ({self.export.workspace_id: sorted(own)} if own else {})

    def _stays(self, chain: str) -> bool:
        """True if acts of the chain are there that go behind no anchor."""
        return self.lengths.get(chain, 0) > self.ends.get(chain, 0)


def _chains_of(act: dict[str, Any]) -> Iterable[str]:
    """Return the chains of sessions about which an act of the workspace's chain says something."""
    if act["action"] == DELETED:
        return [act["subject_id"]]
    if act["action"] == ERASED:
        acts = act["details"].get("acts")
        return acts if isinstance(acts, dict) else []
    return heads_of(act["details"]) if act["action"] in SEALS else []
