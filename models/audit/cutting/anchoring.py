"""What an operator does who cuts the audit: read a verified export, then write the anchors, those of sessions first."""

from datetime import datetime
from pathlib import Path

from models.audit import seal_key
from models.audit.cutting import sessions, workspace_chain
from models.audit.cutting.export import VerifiedExport
from models.audit.cutting.terms import Terms, reason_text, time_limit
from models.audit.principal import Principal
from models.audit.seal_key import SealKey
from models.audit.signed_heads import SignedHeads
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Conflict

_HASH = "SELECT encode(hash, 'hex') FROM audit WHERE chain = %(chain)s AND seq = %(seq)s"


def read(workspace_id: str, file: Path, signed_since: datetime | None = None) -> VerifiedExport:
    """Read and verify an export of this workspace, for the acts that it need not keep any more.

    Raises NotIntact or NoExport for a bad file; Conflict if the workspace keeps all of its audit, or if the export is not its own.
    """
    with transaction(workspace_id) as db:
        before = time_limit(db)
    export = VerifiedExport(file, seal_key.trusted_keys(), before, signed_since)
    with transaction(workspace_id) as db:
        _check_own(db, workspace_id, export)
    return export


def anchor(export: VerifiedExport, principal: Principal, reason: str, key: SealKey, heads: SignedHeads) -> Terms:
    """Write the anchors for all that may be cut. Returns the terms, with their number and that of the acts.

    A crash loses nothing: the anchors that were committed count, and the next call goes on. Raises Invalid for the reason, Conflict
    for a hold on the workspace, or for a chain that is not the one that was exported or signed.
    """
    terms = Terms(principal, reason_text(reason), key, heads, export.sha256)
    sessions.anchor(export, terms)
    workspace_chain.anchor(export, terms)
    return terms


def _check_own(db: Db, workspace_id: str, export: VerifiedExport) -> None:
    if export.workspace_id != workspace_id:
        raise Conflict(f"The export is of workspace {export.workspace_id}, not of {workspace_id}.")
    if db.value(_HASH, chain=workspace_id, seq=export.signed_head.seq) != export.signed_head.hash:
        raise Conflict(f"Act {export.signed_head.seq} of the export is not in this audit: run `assent audit verify`.")
