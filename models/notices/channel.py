"""Channels: destinations of messages about approvals. A channel belongs to a person, or to the workspace.

A workspace's channel `for_everyone` is a default: each person without a channel gets a mail channel with the default's settings.
That channel follows the default until the person changes the channel.
"""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, encryption, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, Invalid, NotFound
from models.notices.quiet_hours import QuietHours
from models.notices.services import PAGERDUTY, SERVICES, scheme_of
from models.pure.key_secret import sha256
from models.settings import settings

ABOUT = ("mine", "groups", "all")
"""Approvals of which a person's channel tells: those that name the person; also those that name a group of theirs; or all that they
may decide. A workspace's channel tells of all."""
MOST_OF_PERSON = 10
MOST_OF_WORKSPACE = 50
SETTINGS = ("name", "about", "timing", "tells_outcomes", "delay_seconds", "quiet_from", "quiet_until", "time_zone")
"""The fields that a default copies to the channels that follow it."""
DELAY_SECONDS = {"push": 30, "mail": 60}
"""How long an approval must have waited before it is told, by kind; 0 for the others. Chat comes first, then push, then mail."""


@dataclass(frozen=True, kw_only=True)
class NewChannel:
    """What somebody asks for in a new channel. The fields are columns of `Channel`."""

    kind: str
    address: str
    secret: str | None = None
    """In plain text. The row holds it encrypted."""
    person_id: str | None = None
    for_everyone: bool = False
    name: str | None = None
    about: str | None = None
    timing: str | None = None
    tells_outcomes: bool = False
    delay_seconds: int | None = None
    quiet_from: str | None = None
    quiet_until: str | None = None
    time_zone: str | None = None
    sign_in_id: str | None = None
    """For push: the sign-in with which the channel ends."""


class Channel(Base):
    """One destination, and the choice of messages that are sent there."""

    __tablename__ = "channel"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`chan_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    person_id: Mapped[str | None] = mapped_column(sa.ForeignKey("person.id"))
    """Null for a channel of the workspace."""
    for_everyone: Mapped[bool] = mapped_column(default=False)
    """True for the workspace's default. Nothing is sent to it."""
    follows_default: Mapped[bool] = mapped_column(default=False)
    """True for a person's channel that Assent made from the default and the person has not changed."""
    kind: Mapped[str]
    """One of `models.notices.services.CHANNEL_KINDS`."""
    name: Mapped[str] = mapped_column(default="")
    address: Mapped[str] = mapped_column(default="")
    """The public part: a mail address, the id of a Slack user or conversation, or the name of a service or an operator's URL."""
    secret: Mapped[str | None]
    """The secret part, encrypted for `deliver`: apprise's URL, a token, or a browser's subscription. For mail: the token in links
    for unsubscribing."""
    token_sha256: Mapped[str | None]
    """For mail: the hash of the token for unsubscribing. For push: the hash of the subscription's endpoint."""
    sign_in_id: Mapped[str | None]
    """For push: the sign-in in that browser. Nothing is sent after its end."""
    about: Mapped[str] = mapped_column(default="all")
    """One of `ABOUT`."""
    timing: Mapped[str] = mapped_column(default="at_once")
    """`at_once`, or `reminders` for only reminders and escalations."""
    tells_outcomes: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True to tell as well what came of a call that was allowed. Slack's messages always do, and a mail to whoever decided by its
    link: `models.outbox.approval_change.TOLD_OF_RESULT`."""
    delay_seconds: Mapped[int | None]
    """How long an approval must have waited before it is told. Null for the kind's own, of `DELAY_SECONDS`."""
    quiet_from: Mapped[str | None]
    """`HH:MM`, in `time_zone`."""
    quiet_until: Mapped[str | None]
    time_zone: Mapped[str] = mapped_column(default="UTC")
    state: Mapped[str] = mapped_column(default="enabled")
    """`enabled` or `disabled`."""
    disabled_reason: Mapped[str] = mapped_column(default="")
    """Why Assent disabled the channel; empty if a person did, or if it is enabled."""
    error: Mapped[str] = mapped_column(default="")
    """Why the last attempt failed; empty after a success."""
    sent_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Time of the last success."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("channel_of_workspace", "workspace_id", "person_id", "id"),
        sa.Index("channel_following", "workspace_id", "person_id", unique=True, postgresql_where=sa.text("follows_default")),
        sa.Index("channel_default", "workspace_id", unique=True, postgresql_where=sa.text("for_everyone")),
    )

    @classmethod
    def create(cls, db: Db, by: Principal, new: NewChannel) -> "Channel":
        """Insert and return an enabled channel.

        A mail channel gets a token for unsubscribing. Raises Invalid, and Conflict for too many channels or a second default.
        """
        _check_count(db, new.person_id)
        row = cls.new(db.workspace_id, clock.now(db), new)
        row.check()
        if row.for_everyone and db.value("SELECT EXISTS (SELECT FROM channel WHERE for_everyone)"):
            raise Conflict("This workspace has a default for everyone: change it, or delete it first.")
        db.insert(row)
        facts = {
            "kind": row.kind,
            "address": Text(row.address, about=row.person_id),
            "person": row.person_id,
            "for_everyone": row.for_everyone,
        }
        acts.record(db, by, "channel.created", row.id, facts)
        return row

    @classmethod
    def new(cls, workspace_id: str, now: datetime, new: NewChannel) -> "Channel":
        """Return an enabled channel without inserting a row."""
        channel_id = ids.new("chan")
        token = secrets.token_urlsafe(24) if new.kind == "mail" else None
        text = token or new.secret
        public_token = json.loads(text)["endpoint"] if new.kind == "push" and text else token
        return cls(
            id=channel_id,
            workspace_id=workspace_id,
            person_id=new.person_id,
            for_everyone=new.for_everyone,
            follows_default=False,
            kind=new.kind,
            name=new.name or "",
            address=new.address,
            secret=encryption.encrypt("deliver", text, channel_id) if text else None,
            token_sha256=sha256(public_token) if public_token else None,
            sign_in_id=new.sign_in_id,
            about=new.about or "all",
            timing=new.timing or "at_once",
            tells_outcomes=new.tells_outcomes,
            delay_seconds=new.delay_seconds,
            quiet_from=new.quiet_from,
            quiet_until=new.quiet_until,
            time_zone=new.time_zone or "UTC",
            state="enabled",
            disabled_reason="",
            error="",
            created_at=now,
            updated_at=now,
        )

    @classmethod
    def find(cls, db: Db, channel_id: str, *, lock: bool = False) -> "Channel":
        """Return the channel. Raises NotFound."""
        row = db.get(cls, channel_id, lock=lock)
        if row is None:
            raise NotFound("channel", channel_id)
        return row

    @property
    def quiet_hours(self) -> QuietHours | None:
        """The daily span in which nothing is sent, or None."""
        if not self.quiet_from or not self.quiet_until:
            return None
        return QuietHours.of(self.quiet_from, self.quiet_until, self.time_zone)

    @property
    def delay(self) -> timedelta:
        """How long an approval must have waited before it is told."""
        return timedelta(seconds=DELAY_SECONDS.get(self.kind, 0) if self.delay_seconds is None else self.delay_seconds)

    @property
    def has_incidents(self) -> bool:
        """True if the destination shows an incident until it is told of the approval's end. For `deliver`, which has the URLs."""
        if self.kind == "operator":
            url = settings().notification_urls.get(self.address)
            return url is not None and scheme_of(url.get_secret_value()) == PAGERDUTY
        return self.kind == "apprise" and self.address == SERVICES[PAGERDUTY].name

    def check(self) -> None:
        """Raise Invalid for settings that are malformed or contradict each other."""
        if bool(self.quiet_from) != bool(self.quiet_until):
            missing = "quiet_until" if self.quiet_from else "quiet_from"
            raise Invalid(missing, "quiet hours need both a beginning and an end; leave both out for none.")
        try:
            QuietHours.of(self.quiet_from or "00:00", self.quiet_until or "01:00", self.time_zone)
        except ValueError as error:
            field, _, message = str(error).partition(": ")
            raise Invalid(field, message) from None
        if self.person_id is None and self.about != "all":
            raise Invalid("about", "a workspace's channel is told of all approvals: leave it out, or use all.")

    def change(self, db: Db, by: Principal, changes: dict[str, Any]) -> None:
        """Set the fields in `changes`: those of `SETTINGS`, and `state`. Enabling clears `disabled_reason`. Raises Invalid."""
        new_values = {name: value for name, value in changes.items() if getattr(self, name) != value}
        if "state" in new_values:
            self.disabled_reason = self.error = ""
        for name, value in new_values.items():
            setattr(self, name, value)
        self.check()
        if not new_values:
            return
        self.follows_default = False
        self.updated_at = clock.now(db)
        if self.for_everyone:
            self._pass_on(db)
        facts = {name: Text(value, about=self.person_id) if isinstance(value, str) else value for name, value in new_values.items()}
        acts.record(db, by, "channel.updated", self.id, facts)

    def must_take_messages(self) -> None:
        """Raise Conflict for a channel to which nothing is sent."""
        if self.for_everyone:
            raise Conflict("Nothing is sent to the default itself: test a channel of a person who follows it.")
        if self.state != "enabled":
            raise Conflict(f"The channel {self.id} is off: enable it first.")

    def disable(self, db: Db, by: Principal, reason: str) -> None:
        """Stop sending, for a reason that the channel's owner reads. Idempotent."""
        if self.state == "enabled":
            self.state, self.disabled_reason, self.updated_at = "disabled", reason, clock.now(db)
            self.follows_default = False
            acts.record(db, by, "channel.disabled", self.id, {"reason": Text(reason, about=self.person_id)})

    def delete(self, db: Db, by: Principal) -> None:
        """Delete the channel with its notifications. Deleting a default also deletes the channels that follow it."""
        deleted = "id = %(id)s OR follows_default AND %(default)s"
        values = {"id": self.id, "default": self.for_everyone}
        db.write(f"DELETE FROM notification WHERE channel_id IN (SELECT id FROM channel WHERE {deleted})", **values)  # noqa: S608 - our own names
        db.write("DELETE FROM channel WHERE follows_default AND %(default)s", default=self.for_everyone)
        acts.record(db, by, "channel.deleted", self.id, {"kind": self.kind, "address": Text(self.address, about=self.person_id)})
        db.delete(self)

    def _pass_on(self, db: Db) -> None:
        """Copy the default's settings to the channels that follow it."""
        values = {name: getattr(self, name) for name in (*SETTINGS, "state", "updated_at")}
        columns = ", ".join(f"{name} = %({name})s" for name in values)
        db.write(f"UPDATE channel SET {columns} WHERE follows_default", **values)  # noqa: S608 - our own names


def _check_count(db: Db, person_id: str | None) -> None:
    most = MOST_OF_PERSON if person_id else MOST_OF_WORKSPACE
    count = db.value("SELECT COUNT(*) FROM channel WHERE person_id IS NOT DISTINCT FROM %(person)s", person=person_id)
    if count >= most:
        whose = "This person has" if person_id else "This workspace has"
        raise Conflict(f"{whose} {most} channels, the most there may be: delete one first.")
