"""Verifies the erasable texts: each text has the digest in its act, and an act records the erasure of each missing text."""

from collections.abc import Iterator
from typing import Any

from models.audit.seals import ANCHORED
from models.audit.text import ERASED, digest
from models.audit.verifying.points import Points
from models.audit.verifying.verdict import AuditReport
from models.audit.verifying.walk import Act


class Texts:
    """The texts of the acts that were read."""

    def __init__(self, report: AuditReport, points: Points) -> None:
        self.report, self.points = report, points
        self.left_out = 0
        """Acts whose texts the file left out."""
        self.restored = 0
        """Texts that exist although they were erased."""

    def act(self, act: Act) -> None:
        """Verify the texts of the next act, of any chain."""
        row = act.row
        details = row["details"] if isinstance(row["details"], dict) else {}
        if row["action"] == ERASED and row["chain"] == self.report.workspace_id:
            self._erased(row["principal"], details.get("acts"))
        if row["action"] == ANCHORED and isinstance(carried := details.get("erased"), dict):
            for principal, acts in carried.items():
                self._erased(principal, acts)
        digests = details.get("texts")
        if not isinstance(digests, dict):
            return
        if act.texts is None:
            self.left_out += 1
            return
        for name, digest_in_act in digests.items():
            self._compare(row["chain"], row["seq"], name, digest_in_act, act.texts.get(name))

    def end(self) -> None:
        """Report the missing texts, after the last act."""
        for chain, seq, name in self.points.unexplained():
            message = f"text {name} of act {seq} of {chain} is missing, and no act says that it was erased"
            self.report.add("removed", chain, seq, seq, message)

    def notes(self) -> Iterator[str]:
        """Yield notes on erased texts and on texts that the file left out."""
        for principal, texts, acts in self.points.erased_by():
            yield f"{texts} text(s) of {acts} act(s) are erased by {principal}: their digests are still in the chain."
        if self.restored:
            yield f"{self.restored} text(s) are there although they were erased, as after a restored backup: erase them again."
        if self.left_out:
            yield f"The texts of {self.left_out} act(s) were left out of this file; their digests are in the chain."

    def _compare(self, chain: str, seq: int, name: str, digest_in_act: Any, text: tuple[str, str] | None) -> None:
        if text is None:
            self.points.absent(chain, seq, name)
            return
        self.restored += self.points.is_erased(chain, seq)
        if not _fits(digest_in_act, text):
            self.report.add("changed", chain, seq, seq, f"text {name} of act {seq} of {chain} is not the one that was written")

    def _erased(self, principal: str, acts: Any) -> None:
        """Record the texts that an act reports as erased. Skips unreadable parts: a changed act was reported already."""
        if isinstance(acts, dict):
            lists = ((chain, seqs) for chain, seqs in acts.items() if isinstance(seqs, list))
            self.points.erase(principal, ((chain, seq) for chain, seqs in lists for seq in seqs if type(seq) is int))


def _fits(digest_in_act: Any, text: tuple[str, str]) -> bool:
    try:
        return bool(digest_in_act == digest(*text))
    except ValueError:
        return False  # Assent never writes a salt that is not hex, nor a text that is not Unicode
