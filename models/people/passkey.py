"""Passkeys: WebAuthn credentials. Each signs in to the workspace in which it was registered, and to no other."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Invalid, NotFound

MOST = 20
"""Most passkeys of one member."""
MAX_NAME = 100


@dataclass(frozen=True)
class Credential:
    """What an authenticator registered."""

    id: bytes
    public_key: bytes
    """COSE."""
    sign_count: int


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
    makers: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """`Principal.makers` of the sign-in in which the passkey was added."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    used_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("passkey_of_person", "workspace_id", "person_id"),)

    @classmethod
    def add(cls, db: Db, person_id: str, credential: Credential, *, name: str, by: Principal) -> "Passkey":
        """Store a member's credential and return the passkey. Raises Invalid beyond the limit and for a stored credential."""
        if len(cls.of_member(db, person_id)) >= MOST:
            raise Invalid("", f"You have {MOST} passkeys, the most that one person may have here: remove one first.")
        if cls.look_up(db, credential.id) is not None:
            raise Invalid("", "This passkey is registered already.")
        row = cls(
            id=ids.new("passkey"),
            workspace_id=db.workspace_id,
            person_id=person_id,
            credential_id=credential.id,
            public_key=credential.public_key,
            sign_count=credential.sign_count,
            name=name[:MAX_NAME] or "Passkey",
            makers=list(by.makers) or None,
            created_at=clock.now(db),
        )
        db.insert(row)
        acts.record(db, by, "person.passkey_added", person_id, {"passkey": row.id, "name": Text(row.name, about=person_id)})
        return row

    @classmethod
    def of_member(cls, db: Db, person_id: str) -> list["Passkey"]:
        """Return a member's passkeys, the oldest first."""
        return db.find(cls, "WHERE person_id = %(person)s ORDER BY created_at, id", person=person_id)

    @staticmethod
    def look_up(db: Db, credential_id: bytes) -> tuple[str, str] | None:
        """Return the workspace's id and the passkey's id for this credential's id, or None."""
        rows = db.rows("SELECT workspace_id, id FROM assent_find_passkey(%(id)s)", id=credential_id)
        return (rows[0][0], rows[0][1]) if rows else None

    @classmethod
    def remove(cls, db: Db, person_id: str, passkey_id: str, *, by: Principal) -> None:
        """Delete a member's passkey. Raises NotFound."""
        row = db.get(cls, passkey_id, lock=True)
        if row is None or row.person_id != person_id:
            raise NotFound("passkey", passkey_id)
        db.delete(row)
        acts.record(db, by, "person.passkey_removed", person_id, {"passkey": row.id, "name": Text(row.name, about=person_id)})


def user_handle(workspace_id: str, person_id: str) -> bytes:
    """Return the member's WebAuthn user handle. An authenticator keeps one passkey per user handle."""
    return hashlib.sha256(f"{workspace_id} {person_id}".encode()).digest()
