"""Verifies cuts: acts are missing at the beginning of a chain only behind a signed anchor, whose hash and count fit.

The workspace's anchors stand at its chain's end, and explain what is missing at its beginning. So gaps are kept until all is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from models.audit.acts import link, time_text
from models.audit.anchors import cuts_of, follows_itself
from models.audit.seals import ANCHORED
from models.audit.verifying.points import Points
from models.audit.verifying.verdict import AuditReport, NewestAnchor


@dataclass(frozen=True)
class Gap:
    """Acts of a chain that are missing before an act, or, without one, before a chain's end."""

    chain: str
    first: int
    last: int
    next: dict[str, Any] | None
    """The act behind the gap; None if there is none."""
    hash: str = ""
    """The hash of the last missing act by the chain's own row, if there is no act behind it."""


class Cuts:
    """The anchors and the gaps that were read."""

    def __init__(self, report: AuditReport, points: Points) -> None:
        self.report, self.points = report, points
        self.gaps: list[Gap] = []
        self.count = 0

    def add(self, row: dict[str, Any]) -> None:
        """Take an anchor that counts: the act of the workspace's chain."""
        cuts, details = cuts_of(row["details"]), row["details"]
        self.count += 1
        self.report.anchor = NewestAnchor(row["seq"], row["at"], row["principal"], str(details.get("export_sha256")))
        self.report.cut_acts += sum(cut.count for cut in cuts)
        self.points.anchor(row["seq"], ((cut.chain, cut.last, cut.hash, cut.count) for cut in cuts))

    def end(self) -> None:
        """Report the gaps that no anchor explains, and the anchors that do not fit, after the last act."""
        for gap in self.gaps:
            if not self._explains(gap):
                self._report(gap)
        for chain, last, act in self.points.not_anchored():
            message = f"the anchor of act {act} says that act {last} of {chain} was another than the one that was sealed"
            self.report.add("rewritten", chain, 1, last, message)
        self._check_counts()

    def notes(self, kept_seq: int | None) -> Iterator[str]:
        """Yield notes on what was cut. `kept_seq` is the number of the head that was kept elsewhere."""
        anchor = self.report.anchor
        if anchor:
            yield (
                f"Verified from the anchor of act {anchor.seq} on, by {anchor.principal}, {time_text(anchor.at)}:"
                f" {self.report.cut_acts} acts are cut behind {self.count} anchor(s)."
                f" The last ones are in the export with SHA-256 {anchor.export_sha256}."
            )
        if kept_seq and any(gap.chain == self.report.workspace_id and gap.first <= kept_seq <= gap.last for gap in self.gaps):
            yield f"The head kept elsewhere, act {kept_seq}, is among the acts that were cut: compare it with their export."

    def _explains(self, gap: Gap) -> bool:
        """True if anchors let all of the gap's acts go, and the chain goes on from there."""
        hashes = self.points.anchors(gap.chain)
        if gap.last > max(hashes, default=0):
            return False
        if gap.next is None:
            return hashes.get(gap.last) == gap.hash
        if gap.chain == self.report.workspace_id and gap.next["action"] == ANCHORED and follows_itself(gap.next):
            return True
        return gap.last in hashes and link(hashes[gap.last], gap.next) == gap.next["hash"]

    def _report(self, gap: Gap) -> None:
        acts = f"act {gap.first} is" if gap.first == gap.last else f"acts {gap.first} to {gap.last} are"
        if gap.next is None:
            message = f"chain {gap.chain} is missing: all of its {gap.last} acts"
            self.report.add("missing", gap.chain, 1, gap.last, message)
            return
        self.report.add(
            "removed", gap.chain, gap.first, gap.last, f"{acts} missing in {gap.chain}, and no anchor says that they were cut"
        )

    def _check_counts(self) -> None:
        """Report anchors that go back behind an earlier one, and those with a wrong count."""
        of_chain, end = "", 0
        for chain, act, last, count, among in self.points.anchored(self.report.workspace_id):
            of_chain, end = chain, end if chain == of_chain else 0
            if last <= end:
                message = (
                    f"the anchor of act {act} replaces another: acts of {chain} went up to act {end} before, and now up to {last}"
                )
                self.report.add("anchor", self.report.workspace_id, act, act, message)
                continue
            if count != last - end - among:
                acts = f"from act {end + 1} to {last} there were {last - end - among}"
                message = f"the anchor of act {act} counts {count} acts of {chain}, and {acts}"
                self.report.add("anchor", self.report.workspace_id, act, act, message)
            end = last
