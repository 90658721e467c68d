"""How far the chains of a workspace are sealed, according to the workspace's own seals, and to no other row of the database.

An intruder can write any row, but not a signature. So a seal counts only if a known key signed it, and if it stands in the chain
that leads to the head that the sealer signed last.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from models.audit import anchors
from models.audit.acts import COLUMNS, GENESIS, link
from models.audit.seal_key import PublicKey
from models.audit.seals import ANCHORED, SEALED, SEALS, Head, heads_of, is_signed
from models.database.rows import Db

ACTS = 200
"""Acts read at once."""


class Forked(Exception):
    """The chain is not the one that was read or signed before. The message says where it differs."""


@dataclass
class Coverage:
    """A workspace's chain up to the act that was read last, and the seals among the acts that were read."""

    workspace_id: str
    keys: list[PublicKey] | None
    """The keys whose seals count. None: every seal counts, since this installation has no key."""
    kept_head: Head | None = None
    """The head that was signed last. The chain must go through it."""
    seq: int = 0
    hash: str = GENESIS
    sealed: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    """Sessions' chains: the length that is sealed, and the time of the seal. In the order of the seals."""
    is_open: bool = False
    """True if an act other than a seal follows the last seal that counts."""
    signed_head: Head | None = None
    """The last act that was read with a good signature."""
    began_at: datetime | None = None
    """The time of the chain's first act, if that was read."""
    seal: int = 0
    """The last seal of the sweep that was read and counts."""
    anchor: Head | None = None
    """The last anchor that was read and counts. A later seal has to cover it before its acts are deleted."""

    @classmethod
    def since(cls, db: Db, workspace_id: str, keys: list[PublicKey] | None, kept_head: Head | None, at: datetime) -> "Coverage":
        """Return a coverage that reads the acts after the time `at` and after the kept head, whichever is earlier.

        It begins behind the acts that were cut, as a signed anchor says.
        """
        coverage = cls(workspace_id, keys, kept_head)
        most = kept_head[0] if kept_head else 0 if keys is not None else _ALL
        rows = db.rows(_START, chain=workspace_id, at=at, most=most)
        start: Head = max([*rows, *filter(None, [anchors.cut_point(db, workspace_id, keys)])], default=(0, GENESIS))
        coverage.seq, coverage.hash = start
        coverage._pass_kept()
        return coverage

    def covers(self, chain: str, seq: int) -> bool:
        """True if a seal that was read covers this act of a session's chain or of the workspace's."""
        if chain == self.workspace_id:
            return seq <= self.seq and not self.is_open
        return seq <= self.sealed.get(chain, (0,))[0]

    def read(self, db: Db, head: Head | None = None) -> None:
        """Read the chain to its end. Raises Forked if that is not `head`, if acts do not follow from each other, or if the kept
        head is not among them."""
        while (self.seq, self.hash) != head and (rows := db.rows(_NEXT, chain=self.workspace_id, seq=self.seq, limit=ACTS)):
            for *columns, key_id, signature in rows:
                self._take(dict(zip(COLUMNS, columns, strict=True)), (key_id, signature) if key_id else None)
        if head and (self.seq, self.hash) != head:
            raise self._forked(f"act {self.seq} is not its last one by the workspace's row")
        if self.kept_head and self.kept_head[0] > self.seq:
            raise self._forked("")

    def extend(self, act: dict[str, Any], heads: dict[str, Head]) -> None:
        """Take a seal that this process appended to the end of the chain that it had read."""
        self.seq, self.hash = act["seq"], act["hash"]
        self._count(act["at"], heads)
        self._note(act)

    def forget(self, before: datetime) -> None:
        """Forget seals from before this time."""
        for chain, (_, at) in list(self.sealed.items()):
            if at > before:
                break
            del self.sealed[chain]

    def _take(self, act: dict[str, Any], signature: tuple[str, str] | None) -> None:
        if act["seq"] != self.seq + 1 or link(self.hash, act) != act["hash"]:
            raise self._forked(f"act {act['seq']} does not follow from the one before")
        self.seq, self.hash = act["seq"], act["hash"]
        self._pass_kept()
        if self.seq == 1:
            self.began_at = act["at"]
        if act["action"] not in SEALS:
            self.is_open = True
        elif self.keys is None or is_signed(act, signature, self.keys):
            self._count(act["at"], heads_of(act["details"]))
            self.signed_head = (self.seq, self.hash) if signature else self.signed_head
            self._note(act)

    def _count(self, at: datetime, heads: dict[str, Head]) -> None:
        self.is_open = False
        for chain, (seq, _) in heads.items():
            self.sealed.pop(chain, None)
            self.sealed[chain] = (seq, at)

    def _note(self, act: dict[str, Any]) -> None:
        """Note a seal or an anchor. An anchor leaves the chain open, so that a seal follows."""
        if act["action"] == SEALED:
            self.seal = act["seq"]
        elif act["action"] == ANCHORED:
            self.anchor, self.is_open = (act["seq"], act["hash"]), True

    def _pass_kept(self) -> None:
        if self.kept_head and self.kept_head[0] == self.seq and self.kept_head[1] != self.hash:
            raise self._forked("")

    def _forked(self, otherwise: str) -> Forked:
        if self.kept_head:
            seq, hash_ = self.kept_head
            return Forked(f"the chain does not go through act {seq} with hash {hash_}, the last one that was signed")
        return Forked(f"the chain is broken: {otherwise}")


_ALL = 2**62
_START = """
    SELECT seq, encode(hash, 'hex') FROM audit WHERE chain = %(chain)s AND seq <= %(most)s AND at <= %(at)s
    ORDER BY seq DESC LIMIT 1
"""
_NEXT = f"""
    SELECT {", ".join(f"act.{name}" for name in COLUMNS)}, signed.key_id, signed.signature
    FROM (
        SELECT {", ".join(COLUMNS[:-1])}, encode(hash, 'hex') AS hash FROM audit
        WHERE chain = %(chain)s AND seq > %(seq)s ORDER BY seq LIMIT %(limit)s
    ) act
    LEFT JOIN LATERAL (
        SELECT key_id, signature FROM seal WHERE seal.workspace_id = act.chain AND seal.seq = act.seq LIMIT 1
    ) signed ON true
    ORDER BY act.seq
"""  # noqa: S608 - our own names
