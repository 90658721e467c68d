"""People who sign in. A person belongs to one workspace.

A human being who is in two workspaces is a person of each, with an id, a name and ways to sign in of each. So no workspace learns
from an e-mail address or an id whether another workspace knows the human being.
"""

import re
import string
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Invalid

MAX_EMAIL = 254
MAX_NAME = 256
ERASED_NAME = "a person who was erased"
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_EMAIL = re.compile(r"[^\s@<>\"',;:\\]+@[^\s@<>\"',;:\\]+")


class Person(Base):
    """A human being who signs in to a workspace."""

    __tablename__ = "person"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    email: Mapped[str]
    """As `normalized` returns it. Never changes, but for an erased person's: that is the person's id, which is no address."""
    name: Mapped[str]
    decides_by_keys: Mapped[bool] = mapped_column(default=True, server_default=sa.true())
    """Whether single keys decide on the pages. A person may switch them off."""
    saved_views: Mapped[list[list[str]] | None] = mapped_column(JSONB(none_as_null=True))
    """The person's own lists of the inbox, each a name and a query: `models.people.saved_view`."""
    folded_groups: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    """The groups of the inbox that the person keeps folded."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    erased_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "email"),
        sa.UniqueConstraint("workspace_id", "id"),
        sa.Index("person_of_email", "email"),
    )

    @classmethod
    def of_email(cls, db: Db, email: str, name: str = "") -> str:
        """Return the id of the workspace's person with this e-mail address. Creates the person if there is none. Raises Invalid."""
        return find(db, email, lock=True) or cls.create(db, email, name)

    @classmethod
    def create(cls, db: Db, email: str, name: str = "") -> str:
        """Create a person of the transaction's workspace and return the id. Raises Invalid.

        Only after `find` with a lock returned None for the address.
        """
        email = normalized(email)
        name = name or email.partition("@")[0]
        row = cls(id=ids.new("user"), workspace_id=db.workspace_id, email=email, name=name, created_at=clock.now(db))
        db.insert(row)
        return row.id

    def forget(self, db: Db, now: datetime) -> None:
        """Replace the name and the address of the person, whose row is locked. Pages and messages then show `ERASED_NAME`."""
        db.write("SELECT assent_forget_person(%(id)s, %(name)s, %(now)s)", id=self.id, name=ERASED_NAME, now=now)


class Identity(Base):
    """A person's account at an issuer of OpenID Connect, or the person's name at the authenticating proxy.

    One account can be connected in several workspaces, to one person of each.
    """

    __tablename__ = "identity"

    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"), primary_key=True)
    issuer: Mapped[str] = mapped_column(primary_key=True)
    """The issuer's URL, or `proxy`."""
    subject: Mapped[str] = mapped_column(primary_key=True)
    """The claim `sub`, which the issuer never gives to another account. E-mail addresses can be reassigned."""
    person_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id", "person_id"], ["member.workspace_id", "member.person_id"]),
        sa.Index("identity_of_account", "issuer", "subject"),
    )

    @classmethod
    def find(cls, db: Db, issuer: str, subject: str) -> str | None:
        """Return the id of the workspace's person with this account, or None."""
        row = db.get(cls, db.workspace_id, issuer, subject)
        return row.person_id if row else None

    @staticmethod
    def everywhere(db: Db, issuer: str, subject: str) -> dict[str, str]:
        """Return the id of the person with this account in each workspace, by the workspace's id.

        The issuer has authenticated the account.
        """
        return dict(db.rows("SELECT * FROM assent_find_identity(%(issuer)s, %(subject)s)", issuer=issuer, subject=subject))

    @classmethod
    def elsewhere(cls, db: Db, person_id: str, issuer: str) -> dict[str, str]:
        """Return the person with an account of this person's at an issuer, in each other workspace, by the workspace's id."""
        people: dict[str, str] = {}
        for row in db.find(cls, "WHERE person_id = %(person)s AND issuer = %(issuer)s", person=person_id, issuer=issuer):
            people |= cls.everywhere(db, issuer, row.subject)
        people.pop(db.workspace_id, None)
        return people

    @classmethod
    def add(cls, db: Db, issuer: str, subject: str, person_id: str) -> None:
        """Store that the account is the person's. The person is a member of the transaction's workspace. Idempotent."""
        if cls.find(db, issuer, subject) is None:
            account = {"workspace_id": db.workspace_id, "issuer": issuer, "subject": subject}
            db.insert(cls(**account, person_id=person_id, created_at=clock.now(db)))


def find(db: Db, email: str, *, lock: bool = False) -> str | None:
    """Return the id of the workspace's person with this e-mail address, or None. Raises Invalid.

    `lock`: keeps everybody else from creating a person with this address in the workspace until the transaction ends.
    """
    email = normalized(email)
    if lock:
        lock_address(db, email)
    row = db.first(Person, "WHERE email = %(email)s", email=email)
    return row.id if row else None


def lock_address(db: Db, email: str) -> None:
    """Keep everybody else from creating a person with this normalized address in the workspace until the transaction ends."""
    db.write("SELECT pg_advisory_xact_lock(hashtextextended('person ' || %(at)s, 0))", at=f"{db.workspace_id} {email}")


def everywhere(db: Db, email: str) -> dict[str, str]:
    """Return the id of the person with this e-mail address in each workspace, by the workspace's id. Raises Invalid.

    For signing in alone, before the workspace is known.
    """
    email = normalized(email)
    return dict(db.rows("SELECT * FROM assent_find_person(%(email)s)", email=email))


def spelling_of(email: str) -> str:
    """Return the normalized spelling of a text that may be no e-mail address: ASCII letters in lower case.

    Other letters stay as they are. A mail server may give the address in other letters to somebody else.
    """
    return email.strip().translate(_LOWER)


def normalized(email: str) -> str:
    """Return an e-mail address as it is stored and compared. Raises Invalid."""
    address = spelling_of(email)
    if len(address) > MAX_EMAIL or not _EMAIL.fullmatch(address) or not address.isprintable():
        raise Invalid("email", "must be an e-mail address such as anna@example.com.")
    return address
