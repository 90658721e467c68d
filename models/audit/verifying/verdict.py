"""The report of a verification."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from models.audit.seals import SignedHead
from models.audit.verifying.walk import Head

Kind = Literal[
    "changed",
    "removed",
    "inserted",
    "cut",
    "missing",
    "rewritten",
    "session_gone",
    "signature",
    "unsigned",
    "unsealed",
    "anchor",
]
"""
changed       an act, or the act before it, was changed
removed       acts are missing in the middle of a chain
inserted      acts belong to no chain, or follow a chain's end
cut           a chain's last acts are missing
missing       a whole chain is missing
rewritten     the chain is consistent, but differs from the one that was sealed or kept
session_gone  a session's row is missing, and no act records its deletion
signature     a seal's signature is wrong, missing, or by an unknown key
unsigned      a seal has no signature although a key is known, and its age does not excuse it
unsealed      no seal covers an act, although a later seal says that all acts of that time are sealed
anchor        an anchor has a wrong count, replaces another, or has no good hash; or an export lacks what goes behind it
"""

MOST = 100
"""Problems that the report lists; it counts the others."""


@dataclass(frozen=True)
class Problem:
    """One difference from what was written."""

    kind: Kind
    chain: str
    first: int
    last: int
    """The acts concerned, by seq."""
    message: str


@dataclass(frozen=True)
class NewestAnchor:
    """The newest anchor: what stays of acts that were cut."""

    seq: int
    """The act's number in the workspace's chain."""
    at: datetime
    principal: str
    export_sha256: str
    """The SHA-256, in hex, of the export that has the acts."""


@dataclass
class AuditReport:
    """The result of a verification."""

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
    """Acts that no seal covers yet."""
    unsealed_since: datetime | None = None
    """The time of the oldest unsealed act."""
    anchor: NewestAnchor | None = None
    """The anchor from which on the audit was verified; None if nothing was cut."""
    cut_acts: int = 0
    """Acts that were cut, or will be, behind all anchors."""
    notes: list[str] = field(default_factory=list)
    """Notes for the reader."""

    @property
    def intact(self) -> bool:
        """True without problems."""
        return not self.problems_found

    def add(self, kind: Kind, chain: str, first: int, last: int, message: str) -> None:
        """Add a problem."""
        self.problems_found += 1
        if len(self.problems) < MOST:
            self.problems.append(Problem(kind, chain, first, last, message))

    def leave_open(self, acts: int, since: datetime) -> None:
        """Count `acts` as unsealed; `since` is the time of the oldest."""
        self.unsealed += acts
        self.unsealed_since = min(self.unsealed_since or since, since)
