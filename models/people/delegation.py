"""Delegations: for a time, one person may decide in another's place. And the rights to decide that a person has.

A delegate cannot delegate further: a delegation gives only the giver's own rights, and only while both people are active and have
a role that decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from models.audit import acts
from models.audit.principal import Principal
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, Forbidden, Invalid, NotFound
from models.people.roles import SCOPES_OF
from models.pure.quorum import Quorum
from models.pure.times import rfc3339

MOST = 20
"""Most live delegations, given and received, of two people together."""
DECIDING_ROLES = sorted(role for role, scopes in SCOPES_OF.items() if "approvals" in scopes)
_LIVE = "ended_at IS NULL AND ends_at > %(now)s"
_TO = f"""
    WHERE workspace_id = %(workspace)s AND to_person_id = ANY(%(people)s) AND {_LIVE} AND starts_at <= %(now)s
        AND accepted_at IS NOT NULL ORDER BY id
"""
_OF = f"WHERE workspace_id = %(workspace)s AND (to_person_id = ANY(%(people)s) OR from_person_id = ANY(%(people)s)) AND {_LIVE}"
_NAMES = """
    SELECT m.person_id, ARRAY(
        SELECT g.group_id::text FROM membership g WHERE g.workspace_id = m.workspace_id AND g.person_id = m.person_id
    )
    FROM member m WHERE m.workspace_id = %(workspace)s AND m.person_id = ANY(%(people)s)
        AND m.deactivated_at IS NULL AND m.role = ANY(%(roles)s)
    ORDER BY m.person_id
"""


@dataclass(frozen=True)
class Right:
    """A person's right to decide, which the person or a delegate may use."""

    person_id: str
    """Whose right it is."""
    names: frozenset[str]
    """The approvers that include this right: `user:ID`, `group:ID`."""
    delegation_id: str | None = None
    """The delegation by which a delegate has the right."""
    group_id: str | None = None
    """The group for which the right was delegated: it counts only where the approvers name that group. None for all rights."""

    def meets(self, quorum: Quorum) -> bool:
        """True if the quorum counts this right. Ignores the four-eyes rule."""
        return quorum.admits(self.names) and (bool(quorum.approvers) or self.group_id is None)

    @classmethod
    def of(cls, person_id: str, names: frozenset[str], delegation_id: str | None = None, group_id: str | None = None) -> "Right":
        """Return the right of a person with these names. A delegation for one group gives of them the group's name alone."""
        return cls(person_id, names if group_id is None else names & {f"group:{group_id}"}, delegation_id, group_id)


@dataclass(frozen=True)
class Terms:
    """Whose rights a delegation lets whom use, and when."""

    from_person_id: str
    to_person_id: str
    group_id: str | None
    """The group of which the rights are; None for all rights."""
    starts_at: datetime | None
    """None: now."""
    ends_at: datetime


class Delegation(Base):
    """Lets one person use another's rights: all of them, or those as a member of one group."""

    __tablename__ = "delegation"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    from_person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"))
    to_person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"))
    group_id: Mapped[str | None]
    """Null for all rights. No foreign key: a deleted group gives no right."""
    starts_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    ends_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    created_by: Mapped[str]
    ended_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Set if somebody ended the delegation before `ends_at`."""
    ended_by: Mapped[str | None]
    accepted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Set once the giver gave or accepted the delegation. Until then it gives no right."""

    __table_args__ = (
        sa.Index("delegation_newest", "workspace_id", "created_at", "id"),
        sa.Index("delegation_to", "workspace_id", "to_person_id", postgresql_where=sa.text("ended_at IS NULL")),
        sa.Index("delegation_from", "workspace_id", "from_person_id", postgresql_where=sa.text("ended_at IS NULL")),
    )

    @classmethod
    def give(cls, db: Db, principal: Principal, terms: Terms) -> "Delegation":
        """Return a new delegation. Unless its giver gives it, it counts once the giver accepts it.

        Raises Invalid for people who cannot decide and for times in the past, Forbidden for a principal who may be the receiver of
        another's right, Conflict for too many.
        """
        giver, receiver = terms.from_person_id, terms.to_person_id
        if giver == receiver:
            raise Invalid("to", "is the person who delegates; name somebody else.")
        _check_receiver(principal, receiver)
        now = clock.now(db)
        starts_at = max(terms.starts_at or now, now)
        if terms.ends_at <= starts_at:
            raise Invalid("ends_at", "must be later than now and than starts_at.")
        _check_people(db, giver, receiver, terms.group_id)
        if len(cls.live(db, [giver, receiver], now)) >= MOST:
            raise Conflict(f"These two have {MOST} delegations already; end one first.")
        row = cls(
            id=ids.new("dlgt"),
            workspace_id=db.workspace_id,
            from_person_id=giver,
            to_person_id=receiver,
            group_id=terms.group_id,
            starts_at=starts_at,
            ends_at=terms.ends_at,
            created_at=now,
            created_by=str(principal),
            accepted_at=now if principal.id == giver else None,
        )
        db.insert(row)
        facts = {"from": giver, "to": receiver, "group": terms.group_id}
        acts.record(db, principal, "delegation.given", row.id, facts | {"ends_at": rfc3339(terms.ends_at)})
        return row

    @classmethod
    def find(cls, db: Db, delegation_id: str, *, lock: bool = False) -> "Delegation":
        """Return the delegation. Raises NotFound."""
        row = db.get(cls, delegation_id, lock=lock)
        if row is None:
            raise NotFound("delegation", delegation_id)
        return row

    @classmethod
    def live(cls, db: Db, people: Iterable[str], now: datetime) -> "list[Delegation]":
        """Return the delegations from or to these people that have not ended. Some may not have begun."""
        return db.find(cls, _OF, workspace=db.workspace_id, people=sorted(people), now=now)

    @classmethod
    def end_all(cls, db: Db, person_id: str, *, by: Principal) -> None:
        """End every live delegation from and to a person, who is being deactivated."""
        for delegation_id in sorted(row.id for row in cls.live(db, [person_id], clock.now(db))):
            cls.find(db, delegation_id, lock=True).end(db, by)

    def waits(self, now: datetime) -> bool:
        """True if the giver may still accept the delegation, and has not."""
        return self.accepted_at is None and self.ended_at is None and self.ends_at > now

    def accept(self, db: Db, principal: Principal) -> None:
        """Have the giver accept the delegation, whose row is locked: it counts from now on. Idempotent.

        Raises Conflict if the delegation has ended, Forbidden for anybody but the giver.
        """
        if principal.id != self.from_person_id:
            raise Forbidden(f"Only user:{self.from_person_id}, whose right it is, can accept this delegation.")
        _check_receiver(principal, self.to_person_id)
        now = clock.now(db)
        if self.waits(now):
            self.accepted_at = now
            acts.record(db, principal, "delegation.accepted", self.id, {"from": self.from_person_id, "to": self.to_person_id})
        elif self.accepted_at is None:
            raise Conflict("This delegation has ended: give another one.")

    def end(self, db: Db, principal: Principal) -> None:
        """End the delegation, whose row is locked, before its time. Idempotent."""
        now = clock.now(db)
        if self.ended_at is None and self.ends_at > now:
            self.ended_at, self.ended_by = now, str(principal)
            acts.record(db, principal, "delegation.ended", self.id, {"from": self.from_person_id, "to": self.to_person_id})


def _check_receiver(principal: Principal, to_person_id: str) -> None:
    """Raise Forbidden if the receiver may be behind the request: nobody becomes a delegate by their own act."""
    if to_person_id in principal.people:
        raise Forbidden(
            f"to: nobody takes another's right by their own act, and user:{to_person_id} may be behind this request. "
            "The person whose right it is delegates it, or another admin does."
        )


def _check_people(db: Db, from_person_id: str, to_person_id: str, group_id: str | None) -> None:
    """Raise Invalid unless both people can decide, and the giver is a member of the group, if one is given."""
    deciding = names_of(db, [from_person_id, to_person_id])
    for field, person_id in (("from", from_person_id), ("to", to_person_id)):
        if person_id not in deciding:
            roles = " or ".join(DECIDING_ROLES)
            raise Invalid(
                field, f"user:{person_id} is not an active member with the role {roles}, and cannot decide anything here."
            )
    if group_id is not None and f"group:{group_id}" not in deciding[from_person_id]:
        raise Invalid("group", f"user:{from_person_id} is not a member of group:{group_id}; leave it out to delegate everything.")


def names_of(db: Db, people: Iterable[str], *, lock: bool = True) -> dict[str, frozenset[str]]:
    """Return each person's names as an approver: `user:ID` and `group:ID`. Only active members with a role that decides.

    `lock`: none of them can be deactivated or change role before the transaction ends.
    """
    unique = sorted(set(people))
    if not unique:
        return {}
    rows = db.rows(_NAMES + (" FOR SHARE OF m" if lock else ""), workspace=db.workspace_id, people=unique, roles=DECIDING_ROLES)
    return {
        person_id: frozenset({f"user:{person_id}", *(f"group:{group_id}" for group_id in groups)}) for person_id, groups in rows
    }


def rights_of_each(db: Db, people: Iterable[str], now: datetime, *, lock: bool = True) -> dict[str, list[Right]]:
    """Return the rights that people may use now, by person: their own first, then delegated ones. In two statements.

    People who cannot decide are missing. `lock` as for `names_of`.
    """
    unique = sorted(set(people))
    received = db.find(Delegation, _TO, workspace=db.workspace_id, people=unique, now=now)
    names = names_of(db, [*unique, *(row.from_person_id for row in received)], lock=lock)
    rights = {person_id: [Right(person_id, names[person_id])] for person_id in unique if person_id in names}
    for row in received:
        right = Right.of(row.from_person_id, names.get(row.from_person_id, frozenset()), row.id, row.group_id)
        if right.names and row.to_person_id in rights:
            rights[row.to_person_id].append(right)
    return rights
