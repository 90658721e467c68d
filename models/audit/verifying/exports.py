"""Compares an export with the anchors behind which its acts were cut."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from models.audit.anchors import AnchorAct
from models.audit.anchors import read as read_anchors
from models.audit.seal_key import PublicKey
from models.audit.seals import ANCHORED
from models.audit.verifying.file import read
from models.audit.verifying.verdict import AuditReport
from models.audit.verifying.verify import verify
from models.audit.verifying.walk import Act, Item
from models.database.transactions import transaction


def anchors_of(workspace_id: str) -> list[AnchorAct]:
    """Return all anchors of a workspace, from the database."""
    with transaction(workspace_id) as db:
        numbers = db.rows("SELECT seq FROM audit_anchor WHERE workspace_id = %(workspace)s ORDER BY seq", workspace=workspace_id)
        return read_anchors(db, workspace_id, [seq for (seq,) in numbers])


def anchors_in(items: Iterable[Item]) -> list[AnchorAct]:
    """Return the anchors among the items of an export."""
    acts = (item for item in items if isinstance(item, Act) and item.row["action"] == ANCHORED)
    return [AnchorAct(act.row, act.signature) for act in acts]


def check(report: AuditReport, file: Path, anchors: list[AnchorAct], keys: list[PublicKey]) -> None:
    """Verify an export, compare it with the anchors that name its hash, and add the problems and a note to `report`.

    Raises NoExport.
    """
    with file.open("rb") as lines:
        sha256 = hashlib.file_digest(lines, "sha256").hexdigest()
    own = [anchor for anchor in anchors if anchor.row["details"].get("export_sha256") == sha256 and anchor.is_good(keys or None)]
    missing = {(cut.chain, cut.last): (cut.hash, anchor.row["seq"]) for anchor in own for cut in anchor.cuts}
    wrong: list[tuple[str, int]] = []

    def compared(items: Iterator[Item]) -> Iterator[Item]:
        for item in items:
            if (
                isinstance(item, Act)
                and (end := missing.pop((item.row["chain"], item.row["seq"]), None))
                and end[0] != item.row["hash"]
            ):
                wrong.append((item.row["chain"], item.row["seq"]))
            yield item

    with file.open(encoding="utf-8") as texts:
        workspace_id, items = read(iter(texts))
        of_file = verify(workspace_id, compared(items), keys)
    for problem in of_file.problems:
        report.add(problem.kind, problem.chain, problem.first, problem.last, f"{file}: {problem.message}")
    for chain, seq in [*wrong, *missing]:
        report.add("anchor", chain, seq, seq, f"{file} has not the act {seq} of {chain} that its anchor names")
    if not own:
        report.add("anchor", report.workspace_id, 0, 0, f"no anchor names the export {file}, with SHA-256 {sha256}")
        return
    acts = sum(cut.count for anchor in own for cut in anchor.cuts)
    numbers = ", ".join(str(anchor.row["seq"]) for anchor in own)
    report.notes.append(f"{file} has the {acts} acts that were cut behind the anchor(s) of act {numbers}.")
