"""People who sign in. A person belongs to the organization; roles, groups and sign-ins are per workspace.

A transaction sees the people that have, or had, a role in its workspace.
"""

import re
import string
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.database import clock, ids
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Invalid

MAX_EMAIL = 254
MAX_NAME = 256
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
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
        return find(db, email, lock=True) or cls.create(db, email, name)

    @classmethod
    def create(cls, db: Db, email: str, name: str = "") -> str:
        """Create a person and return the id. Raises Invalid. Only after `find` with a lock returned None for the address."""
        email = normalized(email)
        row = cls(id=ids.new("user"), email=email, name=name or email.partition("@")[0], created_at=clock.now(db))
        db.insert(row)
        return row.id


class Identity(Base):
    """A person's account at an issuer of OpenID Connect, or the person's name at the authenticating proxy."""

    __tablename__ = "identity"

    issuer: Mapped[str] = mapped_column(primary_key=True)
    """The issuer's URL, or `proxy`."""
    subject: Mapped[str] = mapped_column(primary_key=True)
    """The claim `sub`, which the issuer never gives to another account. E-mail addresses can be reassigned."""
    person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"))
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @staticmethod
    def find(db: Db, issuer: str, subject: str) -> str | None:
        """Return the id of the person with this account, in any workspace, or None."""
        person_id: str | None = db.value("SELECT assent_find_identity(%(issuer)s, %(subject)s)", issuer=issuer, subject=subject)
        return person_id

    @classmethod
    def add(cls, db: Db, issuer: str, subject: str, person_id: str) -> None:
        """Store that the account is the person's. The person is a member of the transaction's workspace. Idempotent."""
        if cls.find(db, issuer, subject) is None:
            db.insert(cls(issuer=issuer, subject=subject, person_id=person_id, created_at=clock.now(db)))


def find(db: Db, email: str, *, lock: bool = False) -> str | None:
    """Return the id of the person with this e-mail address, in any workspace, or None. Raises Invalid.

    `lock`: keeps everybody else from creating a person with this address until the transaction ends.
    """
    email = normalized(email)
    if lock:
        db.write("SELECT pg_advisory_xact_lock(hashtextextended('person ' || %(email)s, 0))", email=email)
    person_id: str | None = db.value("SELECT assent_find_person(%(email)s)", email=email)
    return person_id


def spelled(email: str) -> str:
    """Return the normalized spelling of a text that may be no e-mail address: ASCII letters in lower case.

    Other letters stay as they are. A mail server may give the address in other letters to somebody else.
    """
    return email.strip().translate(_LOWER)


def normalized(email: str) -> str:
    """Return an e-mail address as it is stored and compared. Raises Invalid."""
    address = spelled(email)
    if len(address) > MAX_EMAIL or not _EMAIL.fullmatch(address) or not address.isprintable():
        raise Invalid("email", "must be an e-mail address such as anna@example.com.")
    return address
