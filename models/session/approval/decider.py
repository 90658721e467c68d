"""Who may decide an approval: everybody whom its quorum counts, and with four eyes nobody who asked for the call.

Each fact stands here twice: in Python about one approval, and in SQL about all approvals. These are the only definitions.

    owns         a right meets the quorum                                   `owned_sql`
    is_awaited   it waits, and the person can still vote to allow it        `awaited_sql`
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.database.rows import Db
from models.people.delegation import Right, rights_of_each
from models.pure.quorum import Quorum
from models.session.approval.columns import ApprovalColumns
from models.session.approval.vote import STANDING, Vote

SqlCondition = tuple[str, dict[str, Any]]
"""An SQL condition on a row of `approval`, and its values."""

_EXCLUDES = "(coalesce((quorum ->> 'four_eyes')::boolean, false) AND started_by && %({people})s::text[])"
"""`Approval.excludes`, in SQL."""
_ADMITS = """
    NOT EXISTS (
        SELECT FROM jsonb_array_elements(coalesce(quorum -> 'approvers', '[]')) one WHERE NOT one ?| %({names})s
    )
"""
_NAMES_SOMEBODY = "jsonb_array_length(coalesce(quorum -> 'approvers', '[]')) > 0"
_NOT_VOTED = f"NOT EXISTS (SELECT FROM vote v WHERE v.approval_id = approval.id AND v.person_id = %(voter)s AND v.{STANDING})"
_NOT_USED = (
    f"NOT EXISTS (SELECT FROM vote v WHERE v.approval_id = approval.id AND v.for_person_id = %({{right}})s AND v.{STANDING})"
)


@dataclass(frozen=True)
class Decider:
    """A person who decides approvals: by which rights, and who may have signed in as that person."""

    person_id: str
    rights: tuple[Right, ...]
    """Empty if the person has no role that decides."""
    makers: tuple[str, ...] = ()
    """`Principal.makers`. With four eyes they may not have asked for the call either."""

    @classmethod
    def of(cls, db: Db, person_id: str, now: datetime, makers: Iterable[str] = (), *, lock: bool = False) -> "Decider":
        """Return the person with the present rights. `lock`: they cannot change before the transaction ends."""
        return cls(person_id, tuple(rights_of_each(db, [person_id], now, lock=lock).get(person_id, ())), tuple(makers))

    @classmethod
    def each(cls, db: Db, people: Iterable[str], now: datetime) -> "list[Decider]":
        """Return those of these people who have a role that decides."""
        return [cls(person_id, tuple(rights)) for person_id, rights in rights_of_each(db, people, now, lock=False).items()]

    @property
    def people(self) -> set[str]:
        """The people who may act as this one."""
        return {self.person_id, *self.makers}

    def owns(self, approval: ApprovalColumns) -> bool:
        """True if a right meets the approval's quorum. Ignores four eyes, the status and votes."""
        return any(right.meets(Quorum.of(approval.quorum)) for right in self.rights)

    def rights_on(self, approval: ApprovalColumns, *, takes_back: bool = False) -> list[Right]:
        """Return the rights by which the person may decide the approval. Ignores the status and votes.

        `takes_back`: the person denies what they voted for or edited, for which four eyes do not exclude them.
        """
        if approval.excludes(self.people) and not takes_back:
            return []
        rights = [right for right in self.rights if right.meets(Quorum.of(approval.quorum))]
        return [one for one in rights if one.person_id == self.person_id or not approval.excludes([one.person_id])]

    def unused(self, rights: Iterable[Right], votes: Iterable[Vote]) -> list[Right]:
        """Return those of the rights that no other person's vote has used."""
        owners = {vote.for_person_id for vote in votes if vote.person_id != self.person_id}
        return [right for right in rights if right.person_id not in owners]

    def is_awaited(self, approval: ApprovalColumns, votes: Iterable[Vote]) -> bool:
        """True if the approval waits and this person may vote to allow it. `votes` are its valid votes."""
        cast = list(votes)
        if approval.status != "pending" or any(vote.person_id == self.person_id for vote in cast):
            return False
        return bool(self.unused(self.rights_on(approval), cast))

    @property
    def owned_sql(self) -> SqlCondition:
        """`owns`, in SQL."""
        conditions = ["(" + " AND ".join(_meeting(right, number)) + ")" for number, right in enumerate(self.rights)]
        return _any(conditions), self._names

    @property
    def awaited_sql(self) -> SqlCondition:
        """`is_awaited`, in SQL."""
        conditions, values = [], {"voter": self.person_id, "people": sorted(self.people)}
        for number, right in enumerate(self.rights):
            who, owner = f"right_{number}", f"owner_{number}"
            parts = [*_meeting(right, number), _NOT_USED.format(right=who), f"NOT {_EXCLUDES.format(people=owner)}"]
            conditions.append("(" + " AND ".join(parts) + ")")
            values |= {who: right.person_id, owner: [right.person_id]}
        condition = f"status = 'pending' AND {_NOT_VOTED} AND NOT {_EXCLUDES.format(people='people')} AND {_any(conditions)}"
        return condition, values | self._names

    @property
    def _names(self) -> dict[str, Any]:
        return {f"names_{number}": sorted(right.names) for number, right in enumerate(self.rights)}


def why_sign_in(approval: ApprovalColumns, quorum: Quorum) -> str:
    """Return why a click in a message does not decide the approval, as a sentence; empty if one click is enough.

    `quorum`: what the approval needs now. Who is signed in may vote on any.
    """
    if why := approval.traits.why_no_click:
        return why
    if quorum.required_people > 1:
        return f"{quorum.required_people} people must allow this call."
    return "Whoever started the run may not decide this call." if quorum.needs_sign_in else ""


def _meeting(right: Right, number: int) -> list[str]:
    """Return `Right.meets` as conditions in SQL."""
    return [_ADMITS.format(names=f"names_{number}"), *([_NAMES_SOMEBODY] if right.group_id else [])]


def _any(conditions: Iterable[str]) -> str:
    return "(" + " OR ".join(["false", *conditions]) + ")"
