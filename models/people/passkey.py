"""Passkeys: WebAuthn credentials. Each opens the workspace in which it was registered, and no other."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.database.tables import Base


class Passkey(Base):
    """One credential of a member."""

    __tablename__ = "passkey"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`passkey_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"))
    credential_id: Mapped[bytes] = mapped_column(unique=True)
    public_key: Mapped[bytes]
    """COSE."""
    sign_count: Mapped[int] = mapped_column(sa.BigInteger)
    name: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    used_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("passkey_of_person", "workspace_id", "person_id"),)
