"""One chain as it passes by, act by act: does each follow from the one before, and are they those that were sealed?"""

from dataclasses import dataclass, field
from typing import Any

from models.audit.acts import GENESIS, link
from models.audit.verifying.signing import Signing
from models.audit.verifying.verdict import Kind, Report
from models.audit.verifying.walk import Head


@dataclass
class Chain:
    """A chain, up to the act that came last."""

    id: str
    report: Report
    points: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    """What is known of it from elsewhere: by seq, the hash, and the seq of the workspace's act that says so (0: a kept head)."""
    seq: int = 0
    hash: str = GENESIS
    known: bool = True
    """Whether the act before the next one was there to be read."""
    agreed: int = 0
    """The last seq at which a point agreed."""
    rewritten: bool = False
    unsigned: bool = False
    """Whether it was found that a seal without a signature speaks of acts that are not excused."""
    excused: int | None = None
    sealed: int = field(init=False)
    """How long it is as far as the points know."""

    def __post_init__(self) -> None:
        self.sealed = max(self.points, default=0)

    def take(self, row: dict[str, Any]) -> None:
        """The next act."""
        seq = row["seq"]
        if seq <= self.seq:
            self._found("inserted", seq, seq, f"act {seq} of {self.id} comes again, after act {self.seq}")
            return
        if seq > self.seq + 1:
            self._found("removed", self.seq + 1, seq - 1, f"{_acts(self.seq + 1, seq - 1)} missing in {self.id}")
            self.known = False
        if self.known and not self._follows(row):
            self._found("changed", seq, seq, f"act {seq} of {self.id} does not follow from the one before: one of them was changed")
        self.seq, self.hash, self.known = seq, row["hash"], True
        self._compare()

    def check_signed(self, row: dict[str, Any], signing: Signing) -> None:
        """Name the first act that must be signed and that a seal speaks of which was excused for its age."""
        if signing.excused and not self.unsigned and not signing.excuses(row["at"]) and row["seq"] <= self._excused(signing):
            self.unsigned = True
            message = f"act {row['seq']} of {self.id} is younger than the first signature, and a seal without one speaks of it"
            self._found("unsigned", row["seq"], row["seq"], message)

    def _excused(self, signing: Signing) -> int:
        """How far the seals speak of the chain that were excused for their age."""
        if self.excused is None:
            excused = (seq for seq, points in self.points.items() if any(seal <= signing.excused for _, seal in points))
            self.excused = max(excused, default=0)
        return self.excused

    def end(self, head: Head | None) -> None:
        """There are no more acts; `head` is what the chain's own row says, if there is one."""
        if self.sealed > self.seq or (head and head.seq > self.seq):
            last = max(self.sealed, head.seq if head else 0)
            if self.seq == 0:
                self._found("missing", 1, last, f"chain {self.id} is missing: all of its {last} acts")
            else:
                self._found("cut", self.seq + 1, last, f"{_acts(self.seq + 1, last)} missing at the end of {self.id}")
        elif head and head.seq < self.seq:
            said = f"{_acts(head.seq + 1, self.seq)} too many in {self.id}: by its own row the last one is {head.seq}"
            self._found("inserted", head.seq + 1, self.seq, said)
        elif head and head.hash != self.hash:
            said = f"act {self.seq} of {self.id} is not the last one by the chain's own row: one of the two was changed"
            self._found("changed", self.seq, self.seq, said)

    def _follows(self, row: dict[str, Any]) -> bool:
        try:
            return bool(link(self.hash, row) == row["hash"])
        except (ValueError, TypeError, AttributeError, RecursionError):
            return False  # what cannot be hashed was never written

    def _compare(self) -> None:
        for digest, seal in self.points.get(self.seq, ()):
            if digest == self.hash:
                self.agreed = max(self.agreed, self.seq)
            elif not self.rewritten:
                self.rewritten = True
                by = f"act {seal} of the workspace's chain" if seal else "the head that was kept"
                said = f"{_acts(self.agreed + 1, self.seq)} not what {self.id} had: {by} says that act {self.seq} was another"
                self._found("rewritten", self.agreed + 1, self.seq, said)

    def _found(self, kind: Kind, first: int, last: int, message: str) -> None:
        self.report.found(kind, self.id, first, last, message)


def _acts(first: int, last: int) -> str:
    return f"act {first} is" if first == last else f"acts {first} to {last} are"
