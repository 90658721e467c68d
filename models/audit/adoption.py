"""Adoption: an operator accepts the audit as it is, so that the sealer goes on from there. A signed act records who, why, and the
head that was given up."""

from models.audit import anchors, seals
from models.audit.acts import WorkspaceChain
from models.audit.principal import Principal
from models.audit.seal_key import SealKey
from models.audit.seals import Head
from models.audit.signed_heads import SignedHeads
from models.audit.text import Text
from models.database.transactions import transaction
from models.errors import Invalid

REASON_LENGTH = 1000


def workspaces() -> list[str]:
    """Return the ids of all workspaces."""
    with transaction(role="system") as db:
        return [workspace_id for (workspace_id,) in db.rows("SELECT id FROM workspace ORDER BY id")]


def reason_text(reason: str) -> Text:
    """Return the reason of an adoption as a text of the audit. Raises Invalid for an empty or a long one."""
    if not reason.strip() or len(reason) > REASON_LENGTH:
        raise Invalid("reason", f"must have 1 to {REASON_LENGTH} characters: say why the audit is accepted as it is.")
    return Text(reason.strip())


def adopt(principal: Principal, reason: Text, key: SealKey, heads: SignedHeads) -> tuple[Head | None, Head]:
    """Replace the kept head of the principal's workspace by the chain's present head, and sign that. Returns both heads.

    The kept anchor becomes the newest one of the chain, too.

    The next sweep compares all chains with their seals.
    """
    workspace_id = principal.workspace_id
    with transaction(workspace_id) as db:
        head = WorkspaceChain.lock(db, workspace_id)
        former_head, chain_head = heads.of(workspace_id), (head.audit_seq, head.audit_head)
        details = {"kept": former_head, "adopted": chain_head, "reason": reason}
        act = seals.write(db, principal, seals.ADOPTED, key, details)
        newest_anchor = anchors.newest(db, workspace_id)
        db.write("UPDATE workspace SET seal_alarm = NULL, seal_stopped = NULL WHERE id = %(id)s", id=workspace_id)
    heads.begin(act["at"])
    heads.keep(workspace_id, (act["seq"], act["hash"]))
    heads.replace_anchor(workspace_id, newest_anchor)
    heads.reach(None)
    heads.save()
    return former_head, chain_head
