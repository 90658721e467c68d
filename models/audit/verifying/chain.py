"""Verifies one chain, act by act: each hash follows from the act before, and the acts are those that were sealed."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from models.audit.acts import GENESIS, link
from models.audit.verifying.cuts import Gap
from models.audit.verifying.signing import Signing
from models.audit.verifying.verdict import AuditReport, Kind
from models.audit.verifying.walk import Head


@dataclass
class VerifiedChain:
    """A chain, up to the act that was read last."""

    id: str
    report: AuditReport
    points: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    """Expected hashes by seq, each with the seq of the seal in the workspace's chain that names it (0: a kept head)."""
    gaps: list[Gap] = field(default_factory=list)
    """What is missing, for the anchors to explain. All chains share the list."""
    anchors: dict[int, str] = field(default_factory=dict)
    """The acts at which anchors end that were read before this chain, with their hashes."""
    seq: int = 0
    hash: str = GENESIS
    is_gapless: bool = True
    """False if the act before the next act is missing."""
    agreed: int = 0
    """The last seq whose hash is the expected one."""
    rewritten: bool = False
    """True once a hash differed from the expected one. Reported once."""
    unsigned: bool = False
    """True once an act was reported that is too young for the unsigned seal that covers it."""
    excused: int | None = None
    uncovered: tuple[int, int] | None = None
    """The first and the last act that no seal covers although a later seal says so."""
    sealed: int = field(init=False)
    """The highest seq with an expected hash."""

    def __post_init__(self) -> None:
        self.sealed = max(self.points, default=0)

    def begin_behind(self, head: Head) -> None:
        """Leave out the acts up to this one."""
        self.seq, self.hash, self.agreed = head.seq, head.hash, head.seq

    def take(self, row: dict[str, Any]) -> None:
        """Verify the next act."""
        seq = row["seq"]
        if seq <= self.seq:
            self._add("inserted", seq, seq, f"act {seq} of {self.id} comes again, after act {self.seq}")
            return
        if self.seq == 0 and seq - 1 in self.anchors:
            self._begin(seq - 1)
        if seq > self.seq + 1:
            self.gaps.append(Gap(self.id, self.seq + 1, seq - 1, row))
            self.is_gapless = False
        if self.is_gapless and not self._follows(row):
            self._add("changed", seq, seq, f"act {seq} of {self.id} does not follow from the one before: one of them was changed")
        self.seq, self.hash, self.is_gapless = seq, row["hash"], True
        self._compare()

    def check_signed(self, row: dict[str, Any], signing: Signing) -> None:
        """Report the first act that must be signed but is covered only by a seal that was excused for its age."""
        if signing.excused and not self.unsigned and not signing.excuses(row["at"]) and row["seq"] <= self._excused(signing):
            self.unsigned = True
            message = f"act {row['seq']} of {self.id} is younger than the first signature, and a seal without one speaks of it"
            self._add("unsigned", row["seq"], row["seq"], message)

    def check_sealed(self, row: dict[str, Any], until: datetime | None) -> None:
        """Note an unsealed act from before the time up to which, by a seal, all acts are sealed."""
        if until and row["at"] <= until:
            self.uncovered = (self.uncovered or (row["seq"],))[0], row["seq"]

    def _excused(self, signing: Signing) -> int:
        """Return the last seq of this chain that an excused seal covers."""
        if self.excused is None:
            excused = (seq for seq, points in self.points.items() if any(seal <= signing.excused for _, seal in points))
            self.excused = max(excused, default=0)
        return self.excused

    def end(self, head: Head | None) -> None:
        """Verify the chain's end. `head` is the head on the session's or workspace's row, if the row exists."""
        if self.seq == 0 and self.anchors:
            self._begin(max(self.anchors))
        if self.uncovered:
            message = f"{_acts(*self.uncovered)} in no seal of {self.id}, although a later seal says that all acts of that time are"
            self._add("unsealed", *self.uncovered, message)
        if self.sealed > self.seq or (head and head.seq > self.seq):
            last = max(self.sealed, head.seq if head else 0)
            if self.seq == 0:
                self.gaps.append(Gap(self.id, 1, last, None, head.hash if head and head.seq == last else ""))
            else:
                self._add("cut", self.seq + 1, last, f"{_acts(self.seq + 1, last)} missing at the end of {self.id}")
        elif head and head.seq < self.seq:
            message = f"{_acts(head.seq + 1, self.seq)} too many in {self.id}: by its own row the last one is {head.seq}"
            self._add("inserted", head.seq + 1, self.seq, message)
        elif head and head.hash != self.hash:
            message = f"act {self.seq} of {self.id} is not the last one by the chain's own row: one of the two was changed"
            self._add("changed", self.seq, self.seq, message)

    def _begin(self, last: int) -> None:
        """Begin behind the acts that were cut, up to `last`."""
        self.seq, self.hash = last, self.anchors[last]
        self._compare()

    def _follows(self, row: dict[str, Any]) -> bool:
        try:
            return bool(link(self.hash, row) == row["hash"])
        except (ValueError, TypeError, AttributeError, RecursionError):
            return False  # such an act cannot be hashed, so Assent never wrote it

    def _compare(self) -> None:
        for digest, seal in self.points.get(self.seq, ()):
            if digest == self.hash:
                self.agreed = max(self.agreed, self.seq)
            elif not self.rewritten:
                self.rewritten = True
                by = f"act {seal} of the workspace's chain" if seal else "the head that was kept"
                message = f"{_acts(self.agreed + 1, self.seq)} not what {self.id} had: {by} says that act {self.seq} was another"
                self._add("rewritten", self.agreed + 1, self.seq, message)

    def _add(self, kind: Kind, first: int, last: int, message: str) -> None:
        self.report.add(kind, self.id, first, last, message)


def _acts(first: int, last: int) -> str:
    return f"act {first} is" if first == last else f"acts {first} to {last} are"
