"""Ceremonies: sign-ins and registrations that a browser has begun, each good for one end within a few minutes.

A row belongs to no workspace: until a ceremony ends, nobody knows whose it is.
"""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database.tables import Base


class Ceremony(Base):
    """One of them."""

    __tablename__ = "ceremony"

    id: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of the secret in the browser's cookie."""
    data: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """The challenge of a passkey; state, nonce and verifier of OpenID Connect; the place to go to afterwards."""
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("ceremony_expiry", "expires_at"),)
