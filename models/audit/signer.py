"""Signs seals with the key, and checks the heads that it signed before. Refuses a chain that does not continue from them.

A refusal is logged as CRITICAL and stored in the workspace's row, where `/readyz` reads it. An intruder in the database can change
that row, but not the log, nor the fact that signatures are missing.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from models.audit import seal_key, signed_heads
from models.audit.acts import Audit, WorkspaceChain, link, record
from models.audit.principal import Principal
from models.audit.seal_key import SealKey
from models.audit.signed_heads import Head, NoHeads, SignedHeads
from models.database.rows import Db
from models.database.transactions import transaction

log = logging.getLogger(__name__)

TRUSTED = "audit.heads_trusted"
ACTS = 500
"""Acts read at once."""


@dataclass
class Signer:
    """One sealer, while it holds the file of signed heads."""

    key: SealKey | None = None
    """None if seals stay unsigned. Such a signer refuses nothing."""
    heads: SignedHeads | None = None
    problem: str = ""
    """Why a signer with a key has no heads."""
    refused: dict[str, str] = field(default_factory=dict)
    """Workspaces whose chains were not signed, with the reason."""

    def may_sign(self, db: Db, workspace_id: str, head: Head) -> bool:
        """True if the chain with this present head continues from the head that was signed last. The caller holds the lock on the
        workspace's row."""
        reason = self._reason(db, workspace_id, head)
        if reason:
            self.refuse(workspace_id, reason)
        db.write(_ALARM, id=workspace_id, reason=reason)
        return reason is None

    def refuse(self, workspace_id: str, reason: str) -> None:
        """Leave the workspace unsealed, and record the reason."""
        self.refused[workspace_id] = reason

    def signed(self, workspace_id: str, head: Head) -> None:
        """Keep the chain's new head, after the commit of its signature."""
        if self.heads:
            self.heads.keep(workspace_id, head)

    def _reason(self, db: Db, workspace_id: str, head: Head) -> str | None:
        """Return why the chain must not be signed, or None."""
        if self.key is None:
            return None
        if self.heads is None:
            return self.problem
        kept = self.heads.of(workspace_id)
        if kept is None:
            if _has_signatures(db, workspace_id):
                return "the chain was signed before, and no signed head of it is kept"
            # Saved before the commit of the first signature, so that every signed chain has a kept head.
            self.heads.keep(workspace_id, head)
            self.heads.save()
        elif not goes_through(db, workspace_id, kept, head):
            return f"the chain does not go through act {kept[0]} with hash {kept[1]}, the last one that was signed"
        return None


@contextmanager
def signer() -> Iterator[Signer]:
    """Open this installation's signer. Raises InUse while another process signs."""
    key = seal_key.own()
    if key is None:
        yield Signer()
        return
    with ExitStack() as stack:
        try:
            opened = Signer(key, stack.enter_context(signed_heads.opened(signed_heads.path())))
        except NoHeads as error:
            opened = Signer(key, None, str(error))
        yield opened


def _has_signatures(db: Db, workspace_id: str) -> bool:
    return bool(db.rows("SELECT FROM seal WHERE workspace_id = %(workspace)s LIMIT 1", workspace=workspace_id))


def goes_through(db: Db, workspace_id: str, kept: Head, head: Head) -> bool:
    """True if the acts after the kept head lead to the chain's present head. The caller holds the lock on the workspace's row."""
    seq, hash_ = kept
    if seq and db.value(_HASH, chain=workspace_id, seq=seq) != hash_:
        return False
    while acts := db.find(Audit, _FOLLOWING, chain=workspace_id, seq=seq, limit=ACTS):
        for act in acts:
            if act.seq != seq + 1 or link(hash_, act) != act.hash:
                return False
            seq, hash_ = act.seq, act.hash
    return (seq, hash_) == tuple(head)


_HASH = "SELECT encode(hash, 'hex') FROM audit WHERE chain = %(chain)s AND seq = %(seq)s"
_FOLLOWING = "WHERE chain = %(chain)s AND seq > %(seq)s ORDER BY seq LIMIT %(limit)s"
_ALARM = "UPDATE workspace SET seal_alarm = %(reason)s WHERE id = %(id)s AND seal_alarm IS DISTINCT FROM %(reason)s"


def alarm(workspace_id: str) -> str | None:
    """Return why the sealer refuses the workspace, or None."""
    with transaction(workspace_id) as db:
        reason: str | None = db.value("SELECT seal_alarm FROM workspace WHERE id = %(id)s", id=workspace_id)
        return reason


def workspaces() -> list[str]:
    """Return the ids of all workspaces."""
    with transaction(role="system") as db:
        return [workspace_id for (workspace_id,) in db.rows("SELECT id FROM workspace ORDER BY id")]


def trust(workspace_id: str, principal: Principal, heads: SignedHeads) -> tuple[Head | None, Head]:
    """Replace the kept head by the chain's present head, so that the sealer signs again. An act records it. Returns both heads."""
    with transaction(workspace_id) as db:
        head = WorkspaceChain.lock(db, workspace_id)
        kept, present = heads.of(workspace_id), (head.audit_seq, head.audit_head)
        act = record(db, principal, TRUSTED, workspace_id, {"kept": kept, "trusted": present})
        db.write(_ALARM, id=workspace_id, reason=None)
        trusted = (act["seq"], act["hash"])
    heads.keep(workspace_id, trusted)
    heads.save()
    return kept, present
