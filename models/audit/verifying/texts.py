"""The erasable texts beside the acts: are they those that were chained, and were those that are gone erased by somebody?"""

from collections.abc import Iterator
from typing import Any

from models.audit.text import ERASED, digest
from models.audit.verifying.points import Points
from models.audit.verifying.verdict import Report
from models.audit.verifying.walk import Act


class Texts:
    """The texts of the acts that came by."""

    def __init__(self, report: Report, points: Points) -> None:
        self.report, self.points = report, points
        self.left_out = 0
        """Acts whose texts are not in the file."""
        self.restored = 0
        """Texts that were erased and are there again."""

    def act(self, act: Act) -> None:
        """The next act, of any chain."""
        row = act.row
        details = row["details"] if isinstance(row["details"], dict) else {}
        if row["action"] == ERASED and row["chain"] == self.report.workspace_id:
            self._erased(row["principal"], details.get("acts"))
        digests = details.get("texts")
        if not isinstance(digests, dict):
            return
        if act.texts is None:
            self.left_out += 1
            return
        for name, expected in digests.items():
            self._compare(row["chain"], row["seq"], name, expected, act.texts.get(name))

    def end(self) -> None:
        """There are no more acts."""
        for chain, seq, name in self.points.unexplained():
            message = f"text {name} of act {seq} of {chain} is missing, and no act says that it was erased"
            self.report.found("removed", chain, seq, seq, message)

    def notes(self) -> Iterator[str]:
        """Who erased what, and what was left out."""
        for principal, texts, acts in self.points.erased_by():
            yield f"{texts} text(s) of {acts} act(s) are erased by {principal}: their digests are still in the chain."
        if self.restored:
            yield f"{self.restored} text(s) are there although they were erased, as after a restored backup: erase them again."
        if self.left_out:
            yield f"The texts of {self.left_out} act(s) were left out of this file; their digests are in the chain."

    def _compare(self, chain: str, seq: int, name: str, expected: Any, found: tuple[str, str] | None) -> None:
        if found is None:
            self.points.absent(chain, seq, name)
            return
        self.restored += self.points.is_erased(chain, seq)
        if not _fits(expected, found):
            self.report.found("changed", chain, seq, seq, f"text {name} of act {seq} of {chain} is not the one that was written")

    def _erased(self, principal: str, acts: Any) -> None:
        """Keep what an act says was erased, as far as it can be read: if it was changed, that was found already."""
        if isinstance(acts, dict):
            lists = ((chain, seqs) for chain, seqs in acts.items() if isinstance(seqs, list))
            self.points.erase(principal, ((chain, seq) for chain, seqs in lists for seq in seqs if type(seq) is int))


def _fits(expected: Any, found: tuple[str, str]) -> bool:
    try:
        return bool(expected == digest(*found))
    except ValueError:
        return False  # a salt that is no hex, a text that is no Unicode: neither was ever written
