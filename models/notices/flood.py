"""Floods: more approvals wait for one person than the person can judge. New approvals are then told to the least loaded first.

Nobody loses a right: everybody who may decide an approval still can, sees it in the inbox, and is told later if it still waits.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

import sqlalchemy as sa

from models.database import ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.people.delegation import DECIDING_ROLES
from models.session.approval.approver_set import ApproverSet
from models.session.approval.decider import Decider

LATER = timedelta(minutes=10)
"""During a flood, others than the least loaded are told so much later, unless the approval is decided by then."""
NEWEST = 1000
"""Newest approvals whose messages count as a person's load."""


class Flood(Base):
    """One person's waiting list that is too long, from the sweep that found it until it is half as long."""

    __tablename__ = "flood"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`flood_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"))
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("flood_of_person", "workspace_id", "person_id", unique=True),)

    @classmethod
    def begin(cls, db: Db, person_id: str, now: datetime) -> "Flood":
        """Insert and return the flood of a person who has none."""
        row = cls(id=ids.new("flood"), workspace_id=db.workspace_id, person_id=person_id, created_at=now)
        db.insert(row)
        return row

    @classmethod
    def each(cls, db: Db) -> "list[Flood]":
        """Return the workspace's floods, the oldest first."""
        return db.find(cls, "WHERE workspace_id = %(workspace)s ORDER BY created_at, id", workspace=db.workspace_id)


def deciding_people(db: Db, most: int) -> list[str]:
    """Return the ids of the people of the workspace with a role that decides; of more than `most`, the first ones."""
    return [person_id for (person_id,) in db.rows(_DECIDING, roles=DECIDING_ROLES, most=most)]


def waiting(db: Db, people: Iterable[str], now: datetime, most: int) -> dict[str, int]:
    """Return how many approvals wait for each of these people who has a role that decides, counted up to `most`."""
    counts = {}
    for decider in Decider.each(db, people, now):
        condition, values = decider.awaited_sql
        sets = ApproverSet.with_names(db, {name for right in decider.rights for name in right.names})
        counts[decider.person_id] = int(db.value(_WAITING.format(condition=condition), sets=sets, most=most, **values))
    return counts


def told_later(db: Db, people: Collection[str], first: int) -> set[str]:
    """Return those of these people, who may all decide a new approval, who are told of it later; nobody without a flood.

    `first`: the number of people that the approval needs: so many are told at once, those with the fewest recent messages.
    """
    if len(people) <= first or not db.value(_HAS_FLOOD):
        return set()
    loads: dict[str, int] = dict(db.rows(_LOADS, people=sorted(people), newest=NEWEST))
    by_load = sorted(people, key=lambda person_id: (loads.get(person_id, 0), person_id))
    return set(by_load[first:])


_DECIDING = """
    SELECT person_id FROM member
    WHERE workspace_id = current_setting('assent.workspace') AND deactivated_at IS NULL AND role = ANY(%(roles)s)
    ORDER BY person_id LIMIT %(most)s
"""
_WAITING = """
    SELECT count(*) FROM (
        SELECT FROM approval WHERE workspace_id = current_setting('assent.workspace') AND approver_set = ANY(%(sets)s)
        AND {condition} LIMIT %(most)s
    ) first
"""
_HAS_FLOOD = "SELECT EXISTS (SELECT FROM flood WHERE workspace_id = current_setting('assent.workspace'))"
# A message that is due later was left to others, and loads its person only if it becomes due.
_LOADS = """
    SELECT person_id, count(DISTINCT recent.id) FROM (
        SELECT id, status FROM approval WHERE workspace_id = current_setting('assent.workspace')
        ORDER BY created_at DESC LIMIT %(newest)s
    ) recent
    JOIN notification ON notification.approval_id = recent.id
        AND (receipt IS NOT NULL OR due_at <= assent_now() + interval '90 seconds')
    JOIN channel ON channel.id = channel_id
    WHERE recent.status = 'pending' AND person_id = ANY(%(people)s) GROUP BY person_id
"""
