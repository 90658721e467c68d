"""Members: people with a role in a workspace. A member is deactivated, never deleted."""

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, Invalid, NotFound
from models.people.delegation import Delegation
from models.people.principal import PersonPrincipal, of_person
from models.people.roles import Role
from models.people.sign_in import SignIn
from models.people.slack_user import SlackUser

log = logging.getLogger(__name__)

DIRECT = "direct"
"""The `source` of roles and groups that an admin gave. Any other source is the name of an issuer, or `proxy`."""
_GROUPS = "SELECT group_id FROM membership WHERE workspace_id = %(workspace)s AND person_id = %(person)s"

_WITHDRAW = """
    UPDATE invitation SET deleted_at = assent_now() WHERE workspace_id = %(workspace)s AND deleted_at IS NULL
        AND accepted_at IS NULL AND email = (SELECT email FROM person WHERE id = %(person)s)
    RETURNING id
"""
_ADMINS = """
    SELECT person_id, role = 'admin' AND deactivated_at IS NULL FROM member
    WHERE role = 'admin' AND deactivated_at IS NULL OR person_id = %(person)s ORDER BY person_id FOR NO KEY UPDATE
"""
"""The admins, and the person's own row."""
_NAMES = """
    SELECT id, name FROM person JOIN member ON person_id = id WHERE member.workspace_id = %(workspace)s
    ORDER BY name, id LIMIT %(most)s
"""


class Member(Base):
    """A person's role in a workspace."""

    __tablename__ = "member"

    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"), primary_key=True)
    person_id: Mapped[str] = mapped_column(primary_key=True)
    role: Mapped[str]
    """`admin`, `developer`, `approver` or `viewer`."""
    source: Mapped[str] = mapped_column(default=DIRECT, server_default=DIRECT)
    password_hash: Mapped[str | None]
    """Argon2id, for signing in to this workspace."""
    password_makers: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """`Principal.makers` of the sign-in in which the password was set."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    deactivated_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    kept_admin_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When the source took the role away from the last admin, who keeps it. None: the source gives the role."""

    __table_args__ = (sa.ForeignKeyConstraint(["workspace_id", "person_id"], ["person.workspace_id", "person.id"]),)

    @classmethod
    def find(cls, db: Db, person_id: str, *, lock: bool = False) -> "Member":
        """Return the active member of the transaction's workspace. Raises NotFound."""
        row = db.get(cls, db.workspace_id, person_id, lock=lock)
        if row is None or row.deactivated_at is not None:
            raise NotFound("user", person_id)
        return row

    @classmethod
    def names(cls, db: Db, most: int) -> list[tuple[str, str]]:
        """Return the id and the name of each member, also of those who are deactivated, by name. `most`: how many at most."""
        return [(id_, name) for id_, name in db.rows(_NAMES, workspace=db.workspace_id, most=most)]

    @classmethod
    def refuse_last_admin(cls, db: Db, person_id: str) -> None:
        """Raise Conflict if nobody else is an admin of the transaction's workspace.

        Locks the admins and the person's own row, in one order: of admins who remove each other at the same moment, one stays. So
        call it before the row is locked.
        """
        if cls._is_last_admin(db, person_id):
            raise Conflict(f"user:{person_id} is the last admin of the workspace: make somebody else an admin first.")

    @classmethod
    def _is_last_admin(cls, db: Db, person_id: str) -> bool:
        return [admin_id for admin_id, is_admin in db.rows(_ADMINS, person=person_id) if is_admin] == [person_id]

    @classmethod
    def keeps_admin(cls, db: Db, person_id: str, role: Role | None, *, source: str) -> bool:
        """True if the source gives this role now to the last admin, whose role it gave. Locks as `refuse_last_admin`."""
        row = db.get(cls, db.workspace_id, person_id)
        is_admin = row is not None and row.deactivated_at is None and (row.role, row.source) == ("admin", source)
        return is_admin and role != "admin" and cls._is_last_admin(db, person_id)

    @classmethod
    def give_role(cls, db: Db, person_id: str, role: Role, *, source: str = DIRECT, by: Principal) -> "Member":
        """Give a person a role in the transaction's workspace and return the member, who becomes active. Idempotent."""
        row = db.get(cls, db.workspace_id, person_id, lock=True)
        if row is None:
            now = clock.now(db)
            row = cls(workspace_id=db.workspace_id, person_id=person_id, role=role, source=source, created_at=now)
            db.insert(row)
            acts.record(db, by, "person.added", person_id, {"role": role, "source": Text(source)})
        elif row.deactivated_at is not None or (row.role, row.source) != (role, source):
            change = {"from": row.role, "to": role, "source": Text(source), "was_deactivated": row.deactivated_at is not None}
            acts.record(db, by, "person.role_changed", person_id, change)
            row.role, row.source, row.deactivated_at = role, source, None
        row.kept_admin_at = None
        return row

    @classmethod
    def change_role(cls, db: Db, person_id: str, role: Role, *, by: Principal) -> "Member":
        """Change an active member's role and return the member. Idempotent.

        Raises NotFound; Invalid for a role that a source gives, and for the principal's own role; Conflict for the last admin's.
        """
        if by.id != person_id and role != "admin":
            cls.refuse_last_admin(db, person_id)
        row = cls.find(db, person_id, lock=True)
        if row.role == role:
            return row
        if row.source != DIRECT:
            raise Invalid("role", f"comes from {row.source} at each sign-in: change the person's groups there.")
        if by.id == person_id:
            raise Invalid("role", "nobody can change their own role: ask another admin.")
        return cls.give_role(db, person_id, role, by=by)

    @classmethod
    def deactivate(cls, db: Db, person_id: str, *, by: Principal) -> None:
        """Deactivate a member: end the sign-ins and every way to sign in, pending invitations too. Idempotent.

        Raises NotFound; Invalid for the principal's own membership; Conflict for the last admin.
        """
        if by.id == person_id:
            raise Invalid("user_id", "nobody can deactivate themselves: ask another admin.")
        for (invitation_id,) in db.rows(_WITHDRAW, workspace=db.workspace_id, person=person_id):
            acts.record(db, by, "person.invitation_withdrawn", invitation_id, {"user_id": person_id})
        cls.refuse_last_admin(db, person_id)
        row = db.get(cls, db.workspace_id, person_id, lock=True)
        if row is None:
            raise NotFound("user", person_id)
        row.source = DIRECT  # no issuer reactivates the member at the next sign-in
        row.end(db, by=by)

    def keep_admin(self, db: Db, role: Role | None, *, by: Principal) -> None:
        """Note that the last admin, whose row is locked, keeps the role although the source gives `role`. Idempotent."""
        if self.kept_admin_at is None:
            self.kept_admin_at = clock.now(db)
            facts = {"source": Text(self.source), "given": role or "none"}
            acts.record(db, by, "person.admin_kept", self.person_id, facts)
            words = "workspace %s: its last admin, user:%s, keeps the role, which %s no longer gives"
            log.warning(words, self.workspace_id, self.person_id, self.source)

    def end(self, db: Db, *, by: Principal) -> None:
        """Deactivate the member, whose row is locked, until the source gives a role again. Idempotent."""
        if self.deactivated_at is None:
            self.deactivated_at = clock.now(db)
            self.end_ways_in(db, by=by)
            Delegation.end_all(db, self.person_id, by=by)
            acts.record(db, by, "person.deactivated", self.person_id, {"role": self.role})

    def end_ways_in(self, db: Db, *, by: Principal) -> None:
        """Delete the member's passkeys, password and Slack users, and end the sign-ins."""
        self.password_hash = self.password_makers = None
        db.write("DELETE FROM passkey WHERE person_id = %(person)s", person=self.person_id)
        SignIn.end_all(db, self.person_id, by=by)
        SlackUser.unlink_all(db, self.person_id, by=by)

    def principal(self, db: Db, makers: Iterable[str] | None = None) -> PersonPrincipal:
        """Return the member as a principal with their current groups. `makers` are those of the way by which the person came."""
        groups = db.rows(_GROUPS, workspace=self.workspace_id, person=self.person_id)
        group_ids = frozenset(group_id for (group_id,) in groups)
        return of_person(self.person_id, self.workspace_id, cast("Role", self.role), group_ids, makers=makers or ())
