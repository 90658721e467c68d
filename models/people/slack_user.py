"""Slack users, and the people for whom they decide in a workspace.

An unlinked Slack user who clicks gets a one-time link. From then on, the Slack user decides for the signed-in person who opens the
link and confirms. A row without a person is a Slack user who has clicked and is not linked.
"""

import secrets
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, NotFound
from models.pure.key_secret import sha256
from models.settings import settings

MOST = 20
"""Most Slack users of one person in a workspace."""
MAX_NAME = 80
LINK_LASTS = timedelta(minutes=15)


class SlackUser(Base):
    """One Slack user in one workspace of Assent."""

    __tablename__ = "slack_user"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`slku_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    team_id: Mapped[str]
    """The Slack workspace to which the Slack user belongs: `T...`, or `E...` of an Enterprise Grid."""
    slack_id: Mapped[str]
    """Slack's id of the user: `U...` or `W...`."""
    name: Mapped[str]
    """The Slack user's name at the first click. The Slack user chooses the name, so no check may depend on it."""
    person_id: Mapped[str | None] = mapped_column(sa.ForeignKey("person.id"))
    makers: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """`Principal.makers` of the sign-in in which the Slack user was linked."""
    link_sha256: Mapped[str | None]
    """SHA-256 of the secret in the one-time link."""
    link_until: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    linked_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "team_id", "slack_id"),
        sa.Index("slack_user_of_person", "workspace_id", "person_id"),
    )

    @classmethod
    def of(cls, db: Db, team_id: str, slack_id: str, name: str) -> "SlackUser":
        """Return the Slack user. Inserts the row at the first click."""
        values = {"team": team_id, "user": slack_id}
        row = db.first(cls, _OF, **values)
        if row is None:
            new = values | {"id": ids.new("slku"), "workspace": db.workspace_id, "name": name[:MAX_NAME]}
            db.write(_INSERT, **new)  # another click may insert it first
            row = db.first(cls, _OF, **values)
        assert row is not None
        return row

    @classmethod
    def linked(cls, db: Db) -> "list[SlackUser]":
        """Return the workspace's linked Slack users, the oldest link first."""
        return db.find(cls, "WHERE person_id IS NOT NULL ORDER BY linked_at, id")

    @classmethod
    def of_person(cls, db: Db, person_id: str) -> "list[SlackUser]":
        """Return the person's Slack users, the oldest link first."""
        return db.find(cls, "WHERE person_id = %(person)s ORDER BY linked_at, id", person=person_id)

    @classmethod
    def new_link(cls, db: Db, slack_user_id: str) -> str | None:
        """Return the secret of a new one-time link, or None for a linked Slack user. Earlier links end."""
        row = db.get(cls, slack_user_id, lock=True)
        if row is None or row.person_id is not None:
            return None
        secret = secrets.token_urlsafe(32)
        row.link_sha256, row.link_until = sha256(secret), clock.now(db) + LINK_LASTS
        return secret

    @classmethod
    def of_link(cls, db: Db, secret: str, *, lock: bool = False) -> "SlackUser":
        """Return the Slack user of a one-time link. Raises Conflict."""
        locked = " FOR NO KEY UPDATE" if lock else ""
        row = db.first(cls, f"WHERE link_sha256 = %(digest)s AND link_until > assent_now(){locked}", digest=sha256(secret))
        if row is None:
            raise Conflict(
                "This link was used before, is too old, or is for another workspace. Click the button in Slack again for a new one."
            )
        return row

    @classmethod
    def link(cls, db: Db, secret: str, by: Principal) -> "SlackUser":
        """Use up a one-time link and return the Slack user, who decides for the person `by` from now on. Raises Conflict."""
        row = cls.of_link(db, secret, lock=True)
        if len(cls.of_person(db, by.id)) >= MOST:
            raise Conflict(f"You have {MOST} Slack users, the most that one person may have here: remove one first.")
        row.person_id, row.linked_at, row.link_sha256, row.link_until = by.id, clock.now(db), None, None
        row.makers = list(by.makers) or None
        details = row.facts | {"name": Text(row.name, about=by.id)}
        acts.record(db, by, "person.slack_linked", by.id, details)
        return row

    @classmethod
    def unlink(cls, db: Db, slack_user_id: str, *, by: Principal, person_id: str | None = None) -> None:
        """Delete a linked Slack user, if `person_id` is left out or theirs. Raises NotFound."""
        row = db.get(cls, slack_user_id, lock=True)
        if row is None or row.person_id is None or person_id not in {None, row.person_id}:
            raise NotFound("slack_user", slack_user_id)
        row.end(db, by)

    @classmethod
    def unlink_all(cls, db: Db, person_id: str, *, by: Principal) -> None:
        """Delete all Slack users of a person."""
        for row in db.find(cls, "WHERE person_id = %(person)s ORDER BY id FOR UPDATE", person=person_id):
            row.end(db, by)

    def end(self, db: Db, by: Principal) -> None:
        """Delete the Slack user, whose row is locked."""
        acts.record(db, by, "person.slack_unlinked", str(self.person_id), self.facts)
        db.delete(self)

    @property
    def facts(self) -> dict[str, str]:
        """The details of an act about the linked Slack user."""
        return {"slack_user": self.id, "team": self.team_id, "user": Text(self.slack_id, about=self.person_id)}


def link_of(secret: str) -> str:
    """Return the URL of a one-time link."""
    return f"{settings().public_url.rstrip('/')}/inbox/account/slack/link/{secret}"


_OF = "WHERE team_id = %(team)s AND slack_id = %(user)s"
_INSERT = """
    INSERT INTO slack_user (id, workspace_id, team_id, slack_id, name, created_at)
    VALUES (%(id)s, %(workspace)s, %(team)s, %(user)s, %(name)s, assent_now())
    ON CONFLICT (workspace_id, team_id, slack_id) DO NOTHING
"""
