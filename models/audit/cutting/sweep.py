"""The sweep that deletes the acts behind anchors, once a signed seal covers the anchor. It resumes what a crash left undone."""

from typing import NamedTuple

from models.audit import anchors, seal_key
from models.audit.coverage import Coverage
from models.database.failure import steps_back
from models.database.rows import Db
from models.database.transactions import transaction

TASK = "cut_audit"
BATCH = 500


class DueAnchor(NamedTuple):
    """An anchor whose acts are not deleted yet."""

    workspace_id: str
    seq: int

    @property
    def subject_id(self) -> str:
        """The id under which failures are counted."""
        return f"{self.workspace_id}/{self.seq}"


class BadAnchor(Exception):
    """No known key signed the anchor. Nothing is deleted behind it."""


def due() -> list[DueAnchor]:
    """Return the anchors whose acts are not deleted yet, in their order."""
    with transaction(role="system") as db:
        return [DueAnchor(*row) for row in db.rows(_DUE, limit=BATCH)]


def cut(anchor: DueAnchor) -> int | None:
    """Delete the acts behind an anchor. Returns how many; None if they stay for now.

    They stay while no seal covers the anchor, and while something of them is on hold. Raises BadAnchor or Forked.
    """
    with transaction(anchor.workspace_id) as db:
        is_sealed = _is_sealed(db, anchor)
    return _delete(anchor) if is_sealed else None


def _delete(anchor: DueAnchor) -> int | None:
    with transaction(role="system") as db:
        acts: int | None = db.value(_CUT, workspace=anchor.workspace_id, seq=anchor.seq)
        return acts


def _is_sealed(db: Db, anchor: DueAnchor) -> bool:
    """True if a seal with a good signature follows the anchor, in a chain without gaps."""
    keys = seal_key.trusted_keys()
    if not keys:
        return False  # another process has the key
    acts = anchors.read(db, anchor.workspace_id, [anchor.seq])
    if not acts or not acts[0].is_good(keys):
        raise BadAnchor(f"act {anchor.seq} of {anchor.workspace_id} is no anchor that a known key signed")
    behind = Coverage(anchor.workspace_id, keys, seq=anchor.seq, hash=acts[0].row["hash"])
    behind.read(db)
    return behind.seal > anchor.seq


_CUT = "SELECT assent_cut_audit(%(workspace)s, %(seq)s)"
_DUE = f"""
    SELECT workspace_id, seq FROM audit_anchor WHERE cut_at IS NULL
    AND NOT {steps_back(TASK, "(audit_anchor.workspace_id || '/' || audit_anchor.seq)")}
    ORDER BY workspace_id, seq LIMIT %(limit)s
"""  # noqa: S608 - names of our own
