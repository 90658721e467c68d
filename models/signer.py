"""Who signs a seal: the key, with the heads that it signed before. Refuses a chain that does not go through them, and says so.

A refusal is logged as CRITICAL and stands on the workspace's row, where `/readyz` reads it. The row is in the database and only
informs; the log and the missing signatures are what an intruder there cannot take back.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import sqlalchemy as sa

from models import seal_key, signed_heads
from models.audit import Audit, link, record
from models.db import Db, transaction
from models.principal import Principal
from models.seal_key import SealKey
from models.signed_heads import Head, NoHeads, SignedHeads
from models.workspace import Workspace

log = logging.getLogger(__name__)

TRUSTED = "audit.heads_trusted"
ACTS = 500
"""Acts read at once."""


@dataclass
class Signer:
    """One sealer, while it holds the file of signed heads."""

    key: SealKey | None = None
    """None where seals stay unsigned: then nothing is refused."""
    heads: SignedHeads | None = None
    problem: str = ""
    """Why there are no heads although there is a key."""
    refused: dict[str, str] = field(default_factory=dict)
    """Workspaces whose chains were not signed, and why."""

    def may_sign(self, db: Db, workspace: Workspace) -> bool:
        """Whether the chain goes through the head that was signed last. The workspace's row is locked."""
        reason = self._reason(db, workspace)
        if reason:
            self.refuse(workspace.id, reason)
        if workspace.seal_alarm != reason:
            workspace.seal_alarm = reason
        return reason is None

    def refuse(self, workspace_id: str, reason: str) -> None:
        """Leave the workspace unsealed."""
        self.refused[workspace_id] = reason

    def signed(self, workspace_id: str, head: Head) -> None:
        """The chain's new head was signed and committed."""
        if self.heads:
            self.heads.keep(workspace_id, head)

    def _reason(self, db: Db, workspace: Workspace) -> str | None:
        """Why the chain must not be signed, if so."""
        if self.key is None:
            return None
        if self.heads is None:
            return self.problem
        kept = self.heads.of(workspace.id)
        if kept is None:
            if _has_signatures(db, workspace.id):
                return "the chain was signed before, and no signed head of it is kept"
            # Saved before the first signature is committed: a chain that has one always has a kept head.
            self.heads.keep(workspace.id, (workspace.audit_seq, workspace.audit_head))
            self.heads.save()
        elif not goes_through(db, workspace, kept):
            return f"the chain does not go through act {kept[0]} with hash {kept[1]}, the last one that was signed"
        return None


@contextmanager
def signer() -> Iterator[Signer]:
    """This installation's signer. Raises InUse while another process signs."""
    key = seal_key.own()
    if key is None:
        yield Signer()
        return
    with ExitStack() as stack:
        try:
            found = Signer(key, stack.enter_context(signed_heads.opened(signed_heads.path())))
        except NoHeads as error:
            found = Signer(key, None, str(error))
        yield found


def _has_signatures(db: Db, workspace_id: str) -> bool:
    signed = sa.text("SELECT EXISTS (SELECT FROM seal WHERE workspace_id = :workspace)")
    return bool(db.execute(signed, {"workspace": workspace_id}).scalar_one())


def goes_through(db: Db, workspace: Workspace, kept: Head) -> bool:
    """Whether the acts from the kept head on lead to the chain's present head. The workspace's row is locked."""
    seq, head = kept
    if seq and db.scalar(sa.select(Audit.hash).where(Audit.chain == workspace.id, Audit.seq == seq)) != head:
        return False
    columns = list(Audit.__table__.columns)
    following = sa.select(*columns).where(Audit.chain == workspace.id).order_by(Audit.seq).limit(ACTS)
    while rows := db.execute(following.where(Audit.seq > seq)).all():
        for row in rows:
            act = dict(zip((column.name for column in columns), row, strict=True))
            if act["seq"] != seq + 1 or link(head, act) != act["hash"]:
                return False
            seq, head = act["seq"], act["hash"]
    return (seq, head) == (workspace.audit_seq, workspace.audit_head)


def alarm(workspace_id: str) -> str | None:
    """Why the workspace is not sealed, if the sealer refuses it."""
    with transaction(workspace_id) as db:
        return db.scalar(sa.select(Workspace.seal_alarm).where(Workspace.id == workspace_id))


def workspaces() -> list[str]:
    """The ids of all workspaces."""
    with transaction(role="system") as db:
        return list(db.scalars(sa.select(Workspace.id).order_by(Workspace.id)))


def trust(workspace_id: str, principal: Principal, heads: SignedHeads) -> tuple[Head | None, Head]:
    """Have the sealer sign on from the chain's present head, whatever head was kept. An act says so. Returns both heads."""
    with transaction(workspace_id) as db:
        workspace = db.get_one(Workspace, workspace_id, with_for_update={"key_share": True}, populate_existing=True)
        kept, found = heads.of(workspace_id), (workspace.audit_seq, workspace.audit_head)
        record(db, principal, TRUSTED, workspace_id, {"kept": kept, "trusted": found}, chain=workspace)
        workspace.seal_alarm = None
        db.flush()
        trusted = (workspace.audit_seq, workspace.audit_head)
    heads.keep(workspace_id, trusted)
    heads.save()
    return kept, found
