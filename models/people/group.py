"""Groups of people that approvals can name. A group belongs to one workspace, so that no other workspace's admin adds members."""

from datetime import datetime

import sqlalchemy as sa

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Invalid, NotFound
from models.people.member import DIRECT, Member

MOST_OF_ISSUER = 100
"""Most groups of one person that come from one issuer. Further groups are ignored."""


class Group(Base):
    """A set of members."""

    __tablename__ = "person_group"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`grp_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    name: Mapped[str]
    source: Mapped[str] = mapped_column(default=DIRECT, server_default=DIRECT)
    """`direct`, or the issuer whose group of this name is mirrored: each sign-in updates the person's memberships."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("person_group_of_workspace", "workspace_id", "id"),
        sa.Index(
            "person_group_of_issuer",
            "workspace_id",
            "source",
            "name",
            unique=True,
            postgresql_where=sa.text("source <> 'direct'"),
        ),
    )

    @classmethod
    def create(cls, db: Db, name: str, *, source: str = DIRECT, by: Principal) -> "Group":
        """Return a new group of the transaction's workspace, without members."""
        now = clock.now(db)
        row = cls(id=ids.new("grp"), workspace_id=db.workspace_id, name=name, source=source, created_at=now, updated_at=now)
        db.insert(row)
        acts.record(db, by, "group.created", row.id, {"name": Text(name), "source": Text(source)})
        return row

    @classmethod
    def find(cls, db: Db, group_id: str, *, lock: bool = False) -> "Group":
        """Return the group. Raises NotFound."""
        row = db.get(cls, group_id, lock=lock)
        if row is None:
            raise NotFound("rbac_group", group_id)
        return row

    @classmethod
    def _direct(cls, db: Db, group_id: str) -> "Group":
        """Return a group that admins manage here, locked. Raises NotFound; Invalid for an issuer's group."""
        row = cls.find(db, group_id, lock=True)
        if row.source != DIRECT:
            raise Invalid("rbac_group_id", f"this group comes from {row.source}: change the group there.")
        return row

    @classmethod
    def rename(cls, db: Db, group_id: str, name: str, *, by: Principal) -> "Group":
        """Rename a group and return it. Idempotent. Raises NotFound; Invalid for an issuer's group."""
        row = cls._direct(db, group_id)
        if name != row.name:
            acts.record(db, by, "group.renamed", row.id, {"from": Text(row.name), "to": Text(name)})
            row.name, row.updated_at = name, clock.now(db)
        return row

    @classmethod
    def remove(cls, db: Db, group_id: str, *, by: Principal) -> None:
        """Delete a group with its memberships. Its members stop being approvers by it. Raises NotFound; Invalid."""
        row = cls._direct(db, group_id)
        db.write("DELETE FROM membership WHERE group_id = %(group)s", group=group_id)
        db.delete(row)
        acts.record(db, by, "group.deleted", group_id, {"name": Text(row.name)})

    @classmethod
    def add(cls, db: Db, group_id: str, person_id: str, *, by: Principal) -> "Membership":
        """Add an active member to a group and return the membership. Idempotent. Raises NotFound; Invalid for an issuer's group."""
        row = cls._direct(db, group_id)
        Member.find(db, person_id)
        return Membership.insert(db, row.id, person_id, by=by)

    @classmethod
    def take_out(cls, db: Db, group_id: str, person_id: str, *, by: Principal) -> None:
        """Take a person out of a group. Raises NotFound if they are not in it; Invalid for an issuer's group."""
        cls._direct(db, group_id)
        row = db.get(Membership, group_id, person_id)
        if row is None:
            raise NotFound("user", person_id)
        row.delete(db, by=by)

    @classmethod
    def mirror(cls, db: Db, person_id: str, source: str, names: set[str], *, by: Principal) -> None:
        """Make a person's groups of an issuer exactly these. Creates missing groups."""
        names = set(sorted(names)[:MOST_OF_ISSUER])
        db.write("SELECT pg_advisory_xact_lock(hashtextextended('groups ' || %(at)s, 0))", at=f"{db.workspace_id} {source}")
        of_issuer = db.find(cls, "WHERE source = %(source)s", source=source)
        id_of = {row.name: row.id for row in of_issuer}
        target_ids = {id_of.get(name) or cls.create(db, name, source=source, by=by).id for name in sorted(names)}
        in_groups = "WHERE person_id = %(person)s AND group_id = ANY(%(groups)s)"
        for row in db.find(Membership, in_groups, person=person_id, groups=sorted(id_of.values())):
            if row.group_id not in target_ids:
                row.delete(db, by=by)
            target_ids.discard(row.group_id)
        for group_id in sorted(target_ids):
            Membership.insert(db, group_id, person_id, by=by)


class Membership(Base):
    """One member of a group."""

    __tablename__ = "membership"

    group_id: Mapped[str] = mapped_column(sa.ForeignKey("person_group.id"), primary_key=True)
    person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"), primary_key=True)
    workspace_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("membership_of_person", "workspace_id", "person_id"),)

    @classmethod
    def insert(cls, db: Db, group_id: str, person_id: str, *, by: Principal) -> "Membership":
        """Add a person to a group, whose row is locked, and return the membership. Idempotent."""
        row = db.get(cls, group_id, person_id)
        if row is None:
            now = clock.now(db)
            row = cls(group_id=group_id, person_id=person_id, workspace_id=db.workspace_id, created_at=now)
            db.insert(row)
            acts.record(db, by, "group.member_added", group_id, {"user_id": person_id})
        return row

    def delete(self, db: Db, *, by: Principal) -> None:
        """Take the person out of the group."""
        db.delete(self)
        acts.record(db, by, "group.member_removed", self.group_id, {"user_id": self.person_id})
