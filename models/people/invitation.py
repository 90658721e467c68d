"""Invitations: one-time links by which a person enters a workspace, or comes back after losing every way to sign in."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction
from models.errors import Conflict, Invalid, NotFound
from models.people import person
from models.people.group import Group, Membership
from models.people.member import Member
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.people.roles import Role
from models.pure.key_secret import sha256
from models.settings import settings

MOST_GROUPS = 50
"""Most groups of one invitation."""
Status = Literal["pending", "accepted", "expired", "deleted"]
_FIND = "SELECT id, workspace_id FROM assent_find_invitation(%(digest)s)"


class LinkUsed(Conflict):
    """The one-time link is unknown, used, withdrawn or expired."""

    def __init__(self) -> None:
        super().__init__("This link was used before, was withdrawn, or is too old. Ask an admin for a new one.")


@dataclass(frozen=True)
class Invitee:
    """Who is invited, and as what."""

    email: str
    role: Role
    group_ids: Sequence[str] = ()
    seconds: float | None = None
    """How long the link lasts. None: as the setting says."""


class Invitation(Base):
    """A link. Its secret is shown once and stored as its SHA-256."""

    __tablename__ = "invitation"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`invite_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    email: Mapped[str]
    role: Mapped[str]
    group_ids: Mapped[list[str]] = mapped_column(ARRAY(sa.Text))
    """The groups to which acceptance adds the person."""
    renews: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True for the new link of a member: accepting it ends the member's passkeys, password and sign-ins."""
    secret_sha256: Mapped[str] = mapped_column(unique=True)
    invited_by: Mapped[str]
    """`kind:id` of the principal."""
    makers: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """Ids of the people who made the link: `Principal.people`. None for a link of the operator's command line."""
    invited_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    accepted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    deleted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("invitation_of_workspace", "workspace_id", "id"),)

    def status(self, now: datetime) -> Status:
        """Return the invitation's status at `now`."""
        if self.accepted_at is not None:
            return "accepted"
        if self.deleted_at is not None:
            return "deleted"
        return "pending" if self.expires_at > now else "expired"

    @classmethod
    def create(cls, db: Db, invitee: Invitee, *, by: Principal) -> tuple["Invitation", str]:
        """Invite somebody to the transaction's workspace. Returns the invitation and the secret of its link.

        Earlier links of the address end. Raises Invalid for a malformed address, an active member's address, and unknown groups.
        """
        email = person.normalized(invitee.email)
        person_id = person.find(db, email, lock=True)
        member = db.get(Member, db.workspace_id, person_id) if person_id else None
        if member is not None and member.deactivated_at is None:
            raise Invalid("email", "belongs to a member of this workspace: `assent people link` gives that person a new link.")
        if len(invitee.group_ids) > MOST_GROUPS:
            raise Invalid("rbac_group_ids", f"must name at most {MOST_GROUPS} groups.")
        group_ids = tuple(dict.fromkeys(invitee.group_ids))
        for group_id in group_ids:
            if db.get(Group, group_id) is None:
                raise Invalid("rbac_group_ids", f"names {group_id!r}, which is not a group of this workspace.")
        return cls._make(db, replace(invitee, email=email, group_ids=group_ids), by=by)

    @classmethod
    def of_operator(cls, db: Db, email: str, *, by: Principal) -> tuple["Invitation", str]:
        """Return a one-time link and its secret, for the operator of a local installation.

        The link is for the admin who signs in here: the one with this address, else the only admin who ever signed in. The admin's
        ways to sign in stay. Without such an admin, the link invites one with this address.
        """
        email = person.normalized(email)
        admins = [address for (address,) in db.rows(_SIGNED_IN_ADMINS, email=email)]
        is_known = len(admins) == 1 or email in admins
        return cls._make(db, Invitee(admins[0] if is_known else email, "admin"), for_member=is_known, by=by)

    @classmethod
    def renew(cls, db: Db, person_id: str, *, by: Principal) -> tuple["Invitation", str]:
        """Return an invitation and its secret for an active member who cannot sign in any more. Raises NotFound."""
        Member.find(db, person_id)
        email = db.get_one(Person, person_id).email
        person.lock_address(db, email)
        member = Member.find(db, person_id, lock=True)
        return cls._make(db, Invitee(email, cast("Role", member.role)), renews=True, for_member=True, by=by)

    @classmethod
    def _make(
        cls, db: Db, invitee: Invitee, *, renews: bool = False, for_member: bool = False, by: Principal
    ) -> tuple["Invitation", str]:
        person.lock_address(db, invitee.email)
        now, secret = clock.now(db), secrets.token_urlsafe(32)
        for earlier in db.find(cls, f"WHERE email = %(email)s AND {_PENDING} FOR NO KEY UPDATE", email=invitee.email):
            earlier.deleted_at = now
        row = cls(
            id=ids.new("invite"),
            workspace_id=db.workspace_id,
            email=invitee.email,
            role=invitee.role,
            group_ids=list(invitee.group_ids),
            renews=renews,
            secret_sha256=sha256(secret),
            invited_by=str(by),
            makers=list(by.people) or None,
            invited_at=now,
            expires_at=now + timedelta(seconds=invitee.seconds or settings().invitation_seconds),
        )
        db.insert(row)
        details = {"email": Text(row.email), "role": row.role, "groups": row.group_ids}
        acts.record(db, by, "person.link_renewed" if for_member else "person.invited", row.id, details)
        return row, secret

    @classmethod
    def find(cls, db: Db, invitation_id: str, *, lock: bool = False) -> "Invitation":
        """Return the invitation. Raises NotFound."""
        row = db.get(cls, invitation_id, lock=lock)
        if row is None:
            raise NotFound("invite", invitation_id)
        return row

    @classmethod
    def withdraw(cls, db: Db, invitation_id: str, *, by: Principal) -> None:
        """End an unused link. Idempotent. Raises NotFound; Invalid for a used link."""
        row = cls.find(db, invitation_id, lock=True)
        if row.accepted_at is not None:
            raise Invalid("invite_id", "was accepted: deactivate the person instead.")
        if row.deleted_at is None:
            row.deleted_at = clock.now(db)
            acts.record(db, by, "person.invitation_withdrawn", row.id, {"email": Text(row.email)})

    @classmethod
    def of_secret(cls, secret: str) -> "Invitation":
        """Return the pending invitation with this secret. Raises LinkUsed."""
        with transaction() as db:
            rows = db.rows(_FIND, digest=sha256(secret))
        if not rows:
            raise LinkUsed
        [(invitation_id, workspace_id)] = rows
        with transaction(workspace_id) as db:
            row = cls.find(db, invitation_id)
            if row.status(clock.now(db)) != "pending":
                raise LinkUsed
            return row

    def name_of_member(self, db: Db) -> str:
        """Return the name of the active member with this address, for whom the link is a way to sign in again; empty if none."""
        return db.value(_NAME_OF_MEMBER, email=self.email) or ""

    @classmethod
    def accept(cls, db: Db, invitation_id: str, name: str, address: str | None) -> PersonPrincipal:
        """Use up a link and return the person, now a member, as a principal. Raises LinkUsed.

        A link that renews ends every earlier way to sign in.
        """
        row = db.get(cls, invitation_id)
        if row is not None:
            person.lock_address(db, row.email)
            row = db.get(cls, invitation_id, lock=True)
        if row is None or row.status(clock.now(db)) != "pending":
            raise LinkUsed
        row.accepted_at = clock.now(db)
        person_id = Person.of_email(db, row.email, name)
        by = Principal("user", person_id, row.workspace_id, address=address)
        if row.renews:
            member = db.get(Member, row.workspace_id, person_id, lock=True)
            if member is None or member.deactivated_at is not None:
                raise LinkUsed
            member.end_ways_in(db, by=by)
        else:
            groups = [group for group_id in sorted(row.group_ids) if (group := db.get(Group, group_id, lock=True))]
            member = Member.give_role(db, person_id, cast("Role", row.role), by=by)
            for group in groups:
                Membership.insert(db, group.id, person_id, by=by)
        acts.record(db, by, "person.link_used", row.id, {"user_id": person_id, "renewed": row.renews})
        return replace(member.principal(db, row.makers), address=address)


def link_of(secret: str) -> str:
    """Return the one-time link of an invitation."""
    return f"{settings().public_url.rstrip('/')}/sign-in/link/{secret}"


_SIGNED_IN_ADMINS = """
    SELECT email FROM member m JOIN person p ON p.id = m.person_id
    WHERE role = 'admin' AND deactivated_at IS NULL AND EXISTS (SELECT FROM sign_in s WHERE s.person_id = p.id)
    ORDER BY email <> %(email)s, p.id LIMIT 2
"""
_NAME_OF_MEMBER = """
    SELECT name FROM member m JOIN person p ON p.id = m.person_id WHERE email = %(email)s AND deactivated_at IS NULL
"""
_PENDING = "accepted_at IS NULL AND deleted_at IS NULL AND expires_at > assent_now()"
