"""Decides which chains a sealer may sign: it needs the key and the heads that it signed before, and the chain must go through them.

A chain that does not is refused: it may have been rewritten. The refusal is logged as CRITICAL and stored in the workspace's
row, where `/readyz` reads it. An intruder in the database can change that row, but not the log, nor the missing signatures.

A sealer that lacks the key or a head stands aside, since another sealer may have both. It raises the alarm only if nobody seals.
"""

from collections.abc import Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from models.audit import anchors, seal_key, signed_heads
from models.audit.acts import BEGINNING
from models.audit.coverage import Coverage, Forked
from models.audit.seal_key import SealKey
from models.audit.seals import LATE_SECONDS, Head
from models.audit.signed_heads import NoHeads, SignedHeads
from models.database.rows import Db
from models.database.transactions import transaction
from models.settings import settings


@dataclass
class Signer:
    """One sealer, while it holds the file of signed heads."""

    key: SealKey | None = None
    """None if seals stay unsigned. Such a signer refuses nothing, but seals no chain that was signed before."""
    heads: SignedHeads | None = None
    problem: str = ""
    """Why this signer seals nothing at all."""
    since: datetime = BEGINNING
    """The time from which on the seals are read."""
    coverage: dict[str, Coverage] = field(default_factory=dict)
    """Chains of workspaces, as far as they were read."""
    to_check: Set[str] = frozenset()
    """Workspaces whose chain is checked even if it has not grown, and whose alarm may be this sealer's own. The alarm of another
    sealer stands until that sealer withdraws it."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Workspaces whose chains may have been rewritten, with the reason."""
    aside: dict[str, str] = field(default_factory=dict)
    """Workspaces that this sealer leaves to others, with the reason."""

    def read(self, db: Db, workspace_id: str, head: Head | None = None) -> Coverage | None:
        """Read the workspace's chain to its end, and return its coverage. Returns None if it must not be signed by this sealer.

        `head` is the chain's head, if the caller holds the lock on the workspace's row.
        """
        try:
            coverage = self._coverage(db, workspace_id)
            coverage.read(db, head)
            self._check_anchor(db, workspace_id)
        except Forked as error:
            self.refuse(db, workspace_id, str(error))
            return None
        if reason := self._lacks(db, coverage):
            self.aside[workspace_id] = reason
            return None
        if coverage.signed_head and coverage.signed_head[0] > (coverage.kept_head or (0,))[0]:
            self.keep_head(coverage, coverage.signed_head)
        if self.heads and coverage.anchor:
            self.heads.keep_anchor(workspace_id, coverage.anchor)
        return coverage

    def refuse(self, db: Db, workspace_id: str, reason: str) -> None:
        """Leave the workspace unsealed, and record the reason."""
        self.coverage.pop(workspace_id, None)
        self.refusals[workspace_id] = reason
        db.write(_REFUSED, id=workspace_id, reason=reason)

    def withdraw(self, db: Db, workspace_id: str) -> None:
        """Withdraw the alarms of a workspace whose chain is sealed again."""
        db.write(_SEALED_AGAIN, id=workspace_id, own=workspace_id in self.to_check)

    def before_signing(self, coverage: Coverage) -> None:
        """Keep the chain's head before its first signature, so that every signed chain has a kept head."""
        if self.heads and not coverage.kept_head:
            self.keep_head(coverage, (coverage.seq, coverage.hash))
            self.heads.save()

    def keep_head(self, coverage: Coverage, head: Head) -> None:
        """Keep a head of the chain that is signed."""
        if self.heads:
            coverage.kept_head = head
            self.heads.keep(coverage.workspace_id, head)

    def _coverage(self, db: Db, workspace_id: str) -> Coverage:
        """Return what was read of the workspace's chain. Begins anew if another sealer has kept a head that was read before it."""
        kept_head = self.heads.of(workspace_id) if self.heads else None
        coverage = self.coverage.get(workspace_id)
        if coverage and kept_head != coverage.kept_head and kept_head and kept_head[0] > coverage.seq:
            coverage.kept_head = kept_head
        if coverage is None or coverage.kept_head != kept_head:
            keys = seal_key.trusted_keys() if self.key else None
            coverage = Coverage.since(db, workspace_id, keys, kept_head, self.since - timedelta(seconds=LATE_SECONDS))
            self.coverage[workspace_id] = coverage
        return coverage

    def _check_anchor(self, db: Db, workspace_id: str) -> None:
        """Raise Forked if the anchor that was kept is not the one in the chain. Anchors are never cut."""
        anchor = self.heads.anchor_of(workspace_id) if self.heads and workspace_id in self.to_check else None
        if anchor and not any((act.row["seq"], act.row["hash"]) == anchor for act in anchors.read(db, workspace_id, [anchor[0]])):
            raise Forked(f"the chain has not the anchor that was kept, act {anchor[0]} with hash {anchor[1]}")

    def _lacks(self, db: Db, coverage: Coverage) -> str | None:
        """Return why this sealer cannot sign a chain on which nothing is wrong, or None."""
        if coverage.kept_head or not db.rows(_HAS_SIGNATURES, workspace=coverage.workspace_id):
            return None
        if self.heads is None:
            return f"the chain was signed before, and {_NO_KEY}"
        began = self.heads.began
        if coverage.signed_head and coverage.began_at and began and coverage.began_at > began:
            return None  # another sealer signed a workspace that is younger than this sealer's file
        return f"the chain was signed before, and {self.heads.path} has no head of it: verify it, then run `assent audit adopt`"


@contextmanager
def signer() -> Iterator[Signer]:
    """Open this installation's signer. Raises InUse while another process signs with the same file of heads."""
    with ExitStack() as stack:
        yield _make_signer(stack)


def _make_signer(stack: ExitStack) -> Signer:
    try:
        key = seal_key.own()
    except (OSError, ValueError) as error:
        return Signer(problem=f"the key cannot be read: {error}")
    if key is None:
        production = settings().environment == "production"
        return Signer(problem=_NO_KEY if production else "")
    try:
        file = signed_heads.path()
        if not file.exists() and _audit_is_empty():
            signed_heads.make(file)
        return Signer(key, stack.enter_context(signed_heads.open_file(file)))
    except NoHeads as error:
        return Signer(key, problem=str(error))


def _audit_is_empty() -> bool:
    """True if no workspace has an act. Nothing can be forged yet, so a missing file of heads means a first start."""
    with transaction(role="system") as db:
        return not db.rows("SELECT chain FROM audit LIMIT 1")


_NO_KEY = "the process `sweeps` has no key: set ASSENT_AUDIT_KEY or ASSENT_AUDIT_KEY_FILE"
_HAS_SIGNATURES = "SELECT FROM seal WHERE workspace_id = %(workspace)s LIMIT 1"
_REFUSED = "UPDATE workspace SET seal_alarm = %(reason)s WHERE id = %(id)s AND seal_alarm IS DISTINCT FROM %(reason)s"
_SEALED_AGAIN = """
    UPDATE workspace SET seal_stopped = NULL, seal_alarm = CASE WHEN %(own)s THEN NULL ELSE seal_alarm END WHERE id = %(id)s
"""
