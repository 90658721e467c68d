"""Invitations: one-time links by which a person enters a workspace, or comes back after losing every way to sign in."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from models.database.tables import Base


class Invitation(Base):
    """A link. Its secret is shown once and stored as its SHA-256."""

    __tablename__ = "invitation"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`invite_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    email: Mapped[str]
    role: Mapped[str]
    group_ids: Mapped[list[str]] = mapped_column(ARRAY(sa.Text))
    """The groups that the person enters."""
    renews: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True for the new link of a member: accepting it ends the member's passkeys, password and sign-ins."""
    secret_sha256: Mapped[str] = mapped_column(unique=True)
    invited_by: Mapped[str]
    """`kind:id` of the principal."""
    invited_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    accepted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    deleted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("invitation_of_workspace", "workspace_id", "id"),)
