"""People who sign in. A person belongs to the organization; roles, groups and sign-ins are per workspace.

A transaction sees the people that have, or had, a role in its workspace.
"""

import re
import unicodedata
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.database import clock, ids
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Invalid

MAX_EMAIL = 254
MAX_NAME = 256
_EMAIL = re.compile(r"[^\s@<>\"',;:\\]+@[^\s@<>\"',;:\\]+")


class Person(Base):
    """A human being who signs in."""

    __tablename__ = "person"

    id: Mapped[str] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    """As `normalized` returns it. Never changes."""
    name: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def of_email(cls, db: Db, email: str, name: str = "") -> str:
        """Return the id of the person with this e-mail address. Creates the person if there is none. Raises Invalid."""
        email = normalized(email)
        # Invitations of one address to two workspaces may be accepted at once.
        db.write("SELECT pg_advisory_xact_lock(hashtextextended('person ' || %(email)s, 0))", email=email)
        known_id = find(db, email)
        if known_id is not None:
            return known_id
        row = cls(id=ids.new("user"), email=email, name=name or email.partition("@")[0], created_at=clock.now(db))
        db.insert(row)
        return row.id


class Identity(Base):
    """A person's account at an issuer of OpenID Connect."""

    __tablename__ = "identity"

    issuer: Mapped[str] = mapped_column(primary_key=True)
    """The issuer's URL."""
    subject: Mapped[str] = mapped_column(primary_key=True)
    """The claim `sub`, which the issuer never gives to another account. E-mail addresses can be reassigned."""
    person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"))
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))


def find(db: Db, email: str) -> str | None:
    """Return the id of the person with this e-mail address, in any workspace, or None. Raises Invalid."""
    person_id: str | None = db.value("SELECT assent_find_person(%(email)s)", email=normalized(email))
    return person_id


def spelled(email: str) -> str:
    """Return the normalized spelling of a text that may be no e-mail address."""
    return unicodedata.normalize("NFKC", email).strip().casefold()


def normalized(email: str) -> str:
    """Return an e-mail address as it is stored and compared. Raises Invalid."""
    address = spelled(email)
    if len(address) > MAX_EMAIL or not _EMAIL.fullmatch(address) or not address.isprintable():
        raise Invalid("email", "must be an e-mail address such as anna@example.com.")
    return address
