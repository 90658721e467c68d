"""What people decided about calls like the one that waits: of the same agent, and alike by `models.pure.policy.likeness`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from models.database.exchange import Statement
from models.database.rows import Db
from models.people.names import Names
from models.pure.policy.likeness import in_words
from models.session.approval.columns import is_by_person
from models.session.approval.decider import Decider
from models.session.approval.kinds import tool_call
from models.session.approval.row import Approval

MOST = 100
"""The most earlier approvals that are read: the newest."""


@dataclass(frozen=True)
class Denial:
    """The last denial."""

    approval_id: str
    by: str
    """The name of who denied."""
    message: str
    """What the agent was told; empty if nothing."""
    at: datetime


@dataclass(frozen=True)
class Precedent:
    """The decisions of people about calls like this one, among the last `MOST` that were asked."""

    kind: str
    """What such calls have in common, in words."""
    allows: int = 0
    edits: int = 0
    """Of those allowed: with another input."""
    answers: int = 0
    """A person answered in the tool's place."""
    denials: int = 0
    is_partial: bool = False
    """True if there are older ones that are not counted."""
    is_first: bool = False
    """True if the agent never asked for such a call before. False if that is not known, as for agents of earlier releases."""
    last_denial: Denial | None = None
    newest: Sequence[str] = ()
    """Ids of the approvals that people decided, the newest first."""

    @classmethod
    def of(cls, db: Db, approval: Approval, decider: Decider | None = None) -> "Precedent | None":
        """Return the precedent of an approval; None for one that nothing is like. `decider`: who sees only their own approvals."""
        if approval.likeness is None:
            return None
        own, values = decider.owned_sql if decider else ("true", {})
        place = {"agent": approval.agent_id, "likeness": approval.likeness, "at": approval.created_at, "this": approval.id}
        recent = Statement(_RECENT.format(own=own), {**values, **place, "most": MOST})
        rows, [(is_first,)] = db.read(recent, Statement(_IS_FIRST, place))
        earlier = [_Earlier(*row) for row in rows]
        by_people = [row for row in earlier if is_by_person(row.decided_by)]
        count = Counter(row.status for row in by_people)
        return cls(
            kind=in_words(approval.likeness, approval.tool),
            allows=count["allowed"],
            edits=sum(row.is_edited for row in by_people if row.status == "allowed"),
            answers=count["answered"],
            denials=count["denied"],
            is_partial=any(row.number_read == MOST for row in earlier),
            is_first=is_first,
            last_denial=_last_denial(db, by_people),
            newest=[row.id for row in by_people],
        )

    @property
    def total(self) -> int:
        """The number of decisions."""
        return self.allows + self.answers + self.denials

    @property
    def words(self) -> str:
        """The decisions in words: `allowed 14 (2 with another input), denied 1`; empty without any."""
        edited = f" ({self.edits} with another input)" if self.edits else ""
        counts = [(f"allowed {self.allows}{edited}", self.allows), (f"answered {self.answers}", self.answers)]
        counts.append((f"denied {self.denials}", self.denials))
        words = ", ".join(text for text, number in counts if number)
        return f"{words}, of the last {MOST}" if words and self.is_partial else words


class _Earlier(NamedTuple):
    """An earlier approval."""

    id: str
    status: str
    decided_by: str
    decided_at: datetime
    is_edited: bool
    deny_message: str | None
    number_read: int
    """How many approvals were read for the precedent, pending ones too."""


def _last_denial(db: Db, rows: Sequence[_Earlier]) -> Denial | None:
    row = next((row for row in rows if row.status == "denied"), None)
    return row and Denial(row.id, Names.of(db, [row.decided_by])[row.decided_by], row.deny_message or "", row.decided_at)


_ALIKE = f"agent_id = %(agent)s AND likeness = %(likeness)s AND {tool_call.KIND.sql} AND (created_at, id) < (%(at)s, %(this)s)"
_RECENT = f"""
    SELECT id, status, decided_by, decided_at, decided_sha256 IS NOT NULL,
        coalesce(shown_fields -> 'decision', decision) ->> 'deny_message', number_read
    FROM (
        SELECT *, count(*) OVER () AS number_read
        FROM (SELECT * FROM approval WHERE {_ALIKE} ORDER BY created_at DESC, id DESC LIMIT %(most)s) recent
    ) approval
    WHERE decided_at IS NOT NULL AND {{own}} ORDER BY created_at DESC, id DESC
"""  # noqa: S608 - conditions of our own
_IS_FIRST = f"""
    SELECT NOT EXISTS (SELECT FROM approval WHERE {_ALIKE})
    AND NOT EXISTS (SELECT FROM approval WHERE agent_id = %(agent)s AND likeness IS NULL AND {tool_call.KIND.sql})
"""  # noqa: S608
"""Approvals of earlier releases have no likeness, so of their agents nothing is known to be the first."""
