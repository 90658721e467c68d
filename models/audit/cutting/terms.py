"""The terms of a cut, and the writing of its anchors."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from models.audit import seals
from models.audit.acts import WorkspaceChain
from models.audit.anchors import AuditAnchor, Cut
from models.audit.principal import Principal
from models.audit.seal_key import SealKey
from models.audit.seals import ANCHORED, Head
from models.audit.signed_heads import SignedHeads
from models.audit.signer import Signer
from models.audit.text import Text
from models.database import clock
from models.database.rows import Db
from models.errors import Conflict, Invalid

REASON_LENGTH = 1000
_RETENTION = "SELECT retention FROM workspace WHERE id = current_setting('assent.workspace')"


def reason_text(reason: str) -> Text:
    """Return the reason of a cut as a text of the audit. Raises Invalid for an empty or a long one."""
    if not reason.strip() or len(reason) > REASON_LENGTH:
        raise Invalid("reason", f"must have 1 to {REASON_LENGTH} characters: say why the acts are cut.")
    return Text(reason.strip())


def time_limit(db: Db) -> datetime:
    """Return the time from which on the workspace keeps its audit. Raises Conflict if it keeps all of it for ever."""
    days = (db.value(_RETENTION) or {}).get("audit_days")
    if days is None:
        raise Conflict("This workspace keeps its audit for ever: set retention.audit_days by POST /v1/policy first.")
    return clock.now(db) - timedelta(days=days)


@dataclass(frozen=True)
class Carried:
    """What the acts that go say about acts that stay."""

    heads: dict[str, Head]
    """Sealed heads of chains that stay and that no later seal names."""
    erased: dict[str, dict[str, list[int]]]
    """Acts that stay whose texts were erased, by principal and chain."""


NOTHING = Carried({}, {})


@dataclass
class Terms:
    """Who cuts, why, and with which key; and the hash of the export that has the acts."""

    principal: Principal
    reason: Text
    key: SealKey
    heads: SignedHeads
    export_sha256: str
    anchors: int = 0
    acts: int = 0
    """Anchors that were written, and acts that go behind them."""

    def __post_init__(self) -> None:
        self._signer = Signer(self.key, self.heads)

    @property
    def workspace_id(self) -> str:
        """The workspace whose audit is cut."""
        return self.principal.workspace_id

    def lock(self, db: Db) -> WorkspaceChain:
        """Lock the workspace's chain, and check that it is the one that was signed. Raises Conflict if it is not."""
        self._signer.since = clock.now(db)
        head = WorkspaceChain.lock(db, self.workspace_id)
        if self._signer.read(db, self.workspace_id, (head.audit_seq, head.audit_head)) is None:
            why = self._signer.refusals.get(self.workspace_id) or self._signer.aside.get(self.workspace_id)
            raise Conflict(f"The sealer does not sign this audit, so nothing is cut: {why}.")
        return head

    def write(self, db: Db, head: WorkspaceChain, cuts: list[Cut], carried: Carried = NOTHING) -> dict[str, Any]:
        """Append an anchor to the locked chain, and sign it. Returns the act's columns; call `keep` after the commit."""
        details: dict[str, Any] = {
            "cut": {cut.chain: [cut.last, cut.hash, cut.count] for cut in cuts},
            "heads": {chain: list(sealed) for chain, sealed in carried.heads.items()},
            "erased": carried.erased,
            "before": head.audit_head,
            "export_sha256": self.export_sha256,
            "reason": self.reason,
        }
        act = seals.write(db, self.principal, ANCHORED, self.key, details)
        own = next((cut.last for cut in cuts if cut.chain == self.workspace_id), None)
        db.insert(AuditAnchor(workspace_id=self.workspace_id, seq=act["seq"], cut_to=own, created_at=self._signer.since))
        self.anchors, self.acts = self.anchors + 1, self.acts + sum(cut.count for cut in cuts)
        return act

    def keep(self, act: dict[str, Any]) -> None:
        """Keep the anchor, whose transaction was committed, in the file of signed heads."""
        anchor = (act["seq"], act["hash"])
        self.heads.keep(self.workspace_id, anchor)
        self.heads.keep_anchor(self.workspace_id, anchor)
        self.heads.save()
