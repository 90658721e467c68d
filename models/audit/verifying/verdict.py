"""What a verification says."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from models.audit.seals import SignedHead
from models.audit.verifying.walk import Head

Kind = Literal["changed", "removed", "inserted", "cut", "missing", "rewritten", "session_gone", "signature", "unsigned"]
"""
changed       an act, or the one before it, is not what was written
removed       acts are missing in the middle of a chain
inserted      acts that belong to no chain, or stand behind its end
cut           a chain's last acts are missing
missing       a whole chain is
rewritten     a chain that holds together, but is not the one that was sealed or kept
session_gone  a session's row is, without an act that says so
signature     a seal's signature is wrong, gone, or by a key that is not known
unsigned      seals have no signature, though a key is known and nobody said that there was none at that time
"""

MOST = 100
"""Problems that are named; the others are counted."""


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it was written."""

    kind: Kind
    chain: str
    first: int
    last: int
    """The acts concerned, by seq."""
    message: str


@dataclass
class Report:
    """What was found."""

    workspace_id: str
    acts: int = 0
    chains: int = 0
    seals: int = 0
    problems: list[Problem] = field(default_factory=list)
    problems_found: int = 0
    head: Head | None = None
    """The end of the workspace's chain."""
    signed: SignedHead | None = None
    """The newest seal with a good signature."""
    unsealed: int = 0
    """Acts that no seal speaks of yet."""
    unsealed_since: datetime | None = None
    """The time of the oldest of them."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know beside."""

    @property
    def intact(self) -> bool:
        """Whether nothing was found."""
        return not self.problems_found

    def found(self, kind: Kind, chain: str, first: int, last: int, message: str) -> None:
        """One more problem."""
        self.problems_found += 1
        if len(self.problems) < MOST:
            self.problems.append(Problem(kind, chain, first, last, message))

    def leave_open(self, acts: int, since: datetime) -> None:
        """Acts that no seal speaks of, the oldest of that time."""
        self.unsealed += acts
        self.unsealed_since = min(self.unsealed_since or since, since)
