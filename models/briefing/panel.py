"""Who decides an approval: the people who have voted, how many are missing, and who may still vote."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.database.rows import Db
from models.people import deciders
from models.people.names import Names, approver_names
from models.pure.quorum import Quorum
from models.session.approval.row import Approval
from models.session.approval.vote import Vote

MOST_PEOPLE = 12
"""People who may still vote, by name. The others are counted."""


@dataclass(frozen=True)
class Seat:
    """A vote that stands."""

    person_id: str
    name: str
    on_behalf_of: str
    """The name of the person who delegated the vote; empty if it is the voter's own."""
    result: str
    """`allow`, `deny`, or `edit`, after which somebody else must allow."""


@dataclass(frozen=True)
class PersonName:
    """A person who may still vote."""

    id: str
    name: str


@dataclass(frozen=True)
class Panel:
    """The people who decide one approval together."""

    seats: tuple[Seat, ...]
    missing: int
    """How many more must allow the call."""
    of: str
    """Where the missing people come from: `finance`, `finance and legal`; empty if anybody who decides may vote."""
    people: tuple[PersonName, ...]
    """Who may still vote, by name; none once the approval is decided. Delegates are not listed beside their giver."""
    more: int
    """How many others may still vote."""

    @classmethod
    def of_approval(cls, db: Db, approval: Approval, votes: Sequence[Vote]) -> "Panel | None":
        """Return the panel of an approval with these valid votes. None if anybody with the role, or a key, decides alone."""
        quorum = Quorum.of(approval.quorum)
        if not quorum.needs_people:
            return None
        names = approver_names(db, (name for one in quorum.approvers for name in one))
        missing, people = 0, list[PersonName]()
        if approval.status == "pending":
            missing = max(quorum.required_people - sum(vote.result == "allow" for vote in votes), 0)
            voters = {person_id for vote in votes for person_id in (vote.person_id, vote.for_person_id)}
            people = [PersonName(*one) for one in deciders.of(db, quorum, approval.started_by, but=voters)]
        return cls(
            seats=_seats(db, votes),
            missing=missing,
            of=" and ".join(" or ".join(names.get(name, name) for name in one) for one in quorum.approvers),
            people=tuple(people[:MOST_PEOPLE]),
            more=len(people[MOST_PEOPLE:]),
        )

    @property
    def awaits(self) -> str:
        """Whose vote is missing, in words: `one more of finance`, or `2 people`; empty if none is."""
        if not self.missing:
            return ""
        number = ("one" if self.missing == 1 else str(self.missing)) + (" more" if self.seats else "")
        return f"{number} of {self.of}" if self.of else f"{number} {'person' if self.missing == 1 else 'people'}"


def _seats(db: Db, votes: Sequence[Vote]) -> tuple[Seat, ...]:
    names = Names.of(db, [f"user:{id_}" for vote in votes for id_ in (vote.person_id, vote.for_person_id)])

    def seat(vote: Vote) -> Seat:
        giver = names[f"user:{vote.for_person_id}"] if vote.for_person_id != vote.person_id else ""
        return Seat(vote.person_id, names[f"user:{vote.person_id}"], giver, vote.result)

    return tuple(map(seat, votes))
