"""Groups of people that approvals can name. A group belongs to one workspace, so that no other workspace's admin fills it."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.database.tables import Base
from models.people.member import DIRECT


class Group(Base):
    """A set of members."""

    __tablename__ = "person_group"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`grp_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    name: Mapped[str]
    source: Mapped[str] = mapped_column(default=DIRECT, server_default=DIRECT)
    """`direct`, or the issuer whose group of this name it mirrors: its members are set at their sign-ins."""
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


class Membership(Base):
    """One member of a group."""

    __tablename__ = "membership"

    group_id: Mapped[str] = mapped_column(sa.ForeignKey("person_group.id"), primary_key=True)
    person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"), primary_key=True)
    workspace_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("membership_of_person", "workspace_id", "person_id"),)
