"""Ceremonies: sign-ins and registrations that a browser has begun, each good for one end within a few minutes.

A row belongs to no workspace: until a ceremony ends, nobody knows whose it is.
"""

import secrets
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database import clock
from models.database.tables import Base
from models.database.transactions import transaction
from models.pure.key_secret import sha256

SECONDS = 600
"""How long a ceremony may take."""


class Ceremony(Base):
    """One of them."""

    __tablename__ = "ceremony"

    id: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of the secret in the browser's cookie."""
    data: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """The challenge of a passkey; state, nonce and verifier of OpenID Connect; the place to go to afterwards."""
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("ceremony_expiry", "expires_at"),)

    @classmethod
    def begin(cls, data: dict[str, Any]) -> str:
        """Store what a ceremony needs at its end. Returns the secret for the browser's cookie. Old ceremonies are deleted."""
        secret = secrets.token_urlsafe(32)
        with transaction() as db:
            now = clock.now(db)
            db.write("DELETE FROM ceremony WHERE expires_at < %(now)s", now=now)
            db.insert(cls(id=sha256(secret), data=data, expires_at=now + timedelta(seconds=SECONDS)))
        return secret

    @staticmethod
    def end(secret: str, kind: str) -> dict[str, Any] | None:
        """Return what was stored, once: None for a ceremony of another kind, or one that is unknown, ended or too old."""
        ended = "DELETE FROM ceremony WHERE id = %(id)s RETURNING CASE WHEN expires_at > assent_now() THEN data END"
        with transaction() as db:
            data: dict[str, Any] | None = db.value(ended, id=sha256(secret))
        return data if data and data["kind"] == kind else None
