"""Ceremonies: sign-ins and registrations that a browser has begun. Each can end once, within ten minutes.

A row belongs to no workspace: until a ceremony ends, its person is unknown.
"""

import secrets
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database import clock
from models.database.columns import Mapped, mapped_column
from models.database.tables import Base
from models.database.transactions import transaction
from models.pure.key_secret import sha256

SECONDS = 600
"""How long a ceremony may take."""


class Ceremony(Base):
    """One sign-in or registration that has begun."""

    __tablename__ = "ceremony"

    id: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of the secret in the browser's cookie."""
    data: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """`kind`; the challenge of a passkey; state, nonce and verifier of OpenID Connect; the page to open afterwards."""
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("ceremony_expiry", "expires_at"),)

    @classmethod
    def begin(cls, data: dict[str, Any]) -> str:
        """Store a ceremony's data and return the secret for the browser's cookie. Deletes expired ceremonies."""
        secret = secrets.token_urlsafe(32)
        with transaction() as db:
            now = clock.now(db)
            db.write("DELETE FROM ceremony WHERE expires_at < %(now)s", now=now)
            db.insert(cls(id=sha256(secret), data=data, expires_at=now + timedelta(seconds=SECONDS)))
        return secret

    @staticmethod
    def end(secret: str, kind: str) -> dict[str, Any] | None:
        """Delete a ceremony and return its data. None if it is of another kind, unknown, ended or expired."""
        statement = "DELETE FROM ceremony WHERE id = %(id)s RETURNING CASE WHEN expires_at > assent_now() THEN data END"
        with transaction() as db:
            data: dict[str, Any] | None = db.value(statement, id=sha256(secret))
        return data if data and data["kind"] == kind else None
