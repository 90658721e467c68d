"""Sign-ins: a person's session in a browser. The cookie holds a secret, and the row the secret's SHA-256."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from models.audit import acts
from models.audit.principal import Principal
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction
from models.errors import NotFound
from models.people.issuer import source_name
from models.people.principal import PersonPrincipal, of_person
from models.people.roles import Role
from models.pure.key_secret import sha256
from models.settings import settings

SEEN_SECONDS = 60
"""Least time between two updates of `seen_at`."""
KEPT = timedelta(days=30)
"""How long the row of an ended or expired sign-in is kept."""
RECENT = timedelta(minutes=15)
"""Age limit of a sign-in that adds a way to sign in."""
_FIND = """
    SELECT id, workspace_id, person_id, method, makers, seen_at <= assent_now() - %(pause)s, role, role_limit, source, group_ids
    FROM assent_find_sign_in(%(digest)s)
"""
_SEEN = """
    UPDATE sign_in SET seen_at = assent_now(), idle_until = assent_now() + %(idle)s WHERE id IN (
        SELECT id FROM sign_in WHERE id = %(id)s AND ended_at IS NULL FOR NO KEY UPDATE SKIP LOCKED
    )
"""
_OPEN = "ended_at IS NULL AND idle_until > assent_now() AND expires_at > assent_now()"
_STANDING = f"""
    SELECT id, role, ARRAY(
        SELECT g.group_id::text FROM membership g WHERE g.workspace_id = m.workspace_id AND g.person_id = m.person_id
    )
    FROM sign_in JOIN member m USING (workspace_id, person_id)
    WHERE id = ANY(%(ids)s) AND {_OPEN} AND deactivated_at IS NULL
"""  # noqa: S608 - our own names
_LEADS_BACK = """
    SELECT s.method <> 'link' OR s.created_at <= assent_now() - %(recent)s OR m.password_hash IS NOT NULL
        OR EXISTS (SELECT FROM passkey p WHERE p.workspace_id = m.workspace_id AND p.person_id = m.person_id)
        OR EXISTS (SELECT FROM identity i WHERE i.workspace_id = m.workspace_id AND i.person_id = m.person_id)
    FROM sign_in s JOIN member m USING (workspace_id, person_id) WHERE s.id = %(id)s
"""
Standing = tuple[str, frozenset[str]]
"""A person's role, and the ids of their groups."""


class SignIn(Base):
    """One browser in which a person is signed in to one workspace."""

    __tablename__ = "sign_in"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`signin_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"))
    secret_sha256: Mapped[str] = mapped_column(unique=True)
    method: Mapped[str]
    """`link`, `passkey`, `password`, `proxy`, or `oidc:` and the issuer's name."""
    role_limit: Mapped[str | None]
    """The strongest role that the issuer or proxy gives. It limits a role that comes from elsewhere. None for other methods."""
    makers: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """`Principal.makers`: who made the link of the sign-in, or of the sign-in in which its passkey or password was added."""
    address: Mapped[str | None]
    """The client's network address at the sign-in."""
    user_agent: Mapped[str | None]
    """The browser's User-Agent at the sign-in, at most 300 characters."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    seen_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """Written at most once a minute."""
    idle_until: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """End of the sign-in. Each request moves it."""
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """Final end of the sign-in. No request moves it."""
    ended_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("sign_in_of_person", "workspace_id", "person_id"),)

    @classmethod
    def start(
        cls,
        db: Db,
        person: PersonPrincipal,
        method: str,
        *,
        limit: Role | None = None,
        user_agent: str | None = None,
    ) -> tuple["SignIn", str]:
        """Sign a member in, and return the row and the secret for the cookie. Deletes the member's sign-ins older than `KEPT`."""
        now, secret = clock.now(db), secrets.token_urlsafe(32)
        old = "DELETE FROM sign_in WHERE person_id = %(person)s AND (ended_at < %(then)s OR expires_at < %(then)s)"
        db.write(old, person=person.id, then=now - KEPT)
        row = cls(
            id=ids.new("signin"),
            workspace_id=db.workspace_id,
            person_id=person.id,
            secret_sha256=sha256(secret),
            method=method,
            role_limit=limit,
            makers=list(person.makers) or None,
            address=person.address,
            user_agent=(user_agent or "")[:300] or None,
            created_at=now,
            seen_at=now,
            idle_until=now + timedelta(seconds=settings().sign_in_idle_seconds),
            expires_at=now + timedelta(seconds=settings().sign_in_seconds),
        )
        db.insert(row)
        acts.record(db, person, "person.signed_in", person.id, {"sign_in": row.id, "method": method})
        return row, secret

    @classmethod
    def of_member(cls, db: Db, person_id: str) -> list["SignIn"]:
        """Return a member's open sign-ins, the last used first."""
        return db.find(cls, f"WHERE person_id = %(person)s AND {_OPEN} ORDER BY seen_at DESC, id", person=person_id)

    @staticmethod
    def method_of(db: Db, sign_in_id: str) -> str:
        """Return the method of a sign-in; empty for an unknown sign-in."""
        return str(db.value("SELECT method FROM sign_in WHERE id = %(id)s", id=sign_in_id) or "")

    @staticmethod
    def needs_way_back(db: Db, sign_in_id: str) -> bool:
        """True if a link alone let the person in, and the sign-in may still add a way to come back: it is younger than RECENT."""
        return db.value(_LEADS_BACK, id=sign_in_id, recent=RECENT) is False

    @classmethod
    def standings(cls, db: Db, sign_in_ids: Iterable[str]) -> dict[str, Standing]:
        """Return the current role and groups of each sign-in's person, by sign-in. Only open sign-ins of active members."""
        rows = db.rows(_STANDING, ids=sorted(sign_in_ids))
        return {id_: (role, frozenset(group_ids)) for id_, role, group_ids in rows}

    @classmethod
    def end(cls, db: Db, person_id: str, sign_in_id: str, *, by: Principal) -> None:
        """End one sign-in of a member. Idempotent. Raises NotFound."""
        row = db.get(cls, sign_in_id, lock=True)
        if row is None or row.person_id != person_id:
            raise NotFound("sign_in", sign_in_id)
        if row.ended_at is None:
            row.ended_at = clock.now(db)
            acts.record(db, by, "person.signed_out", person_id, {"sign_in": row.id})

    @classmethod
    def end_all(cls, db: Db, person_id: str, *, by: Principal, but: str = "") -> int:
        """End a member's sign-ins in the transaction's workspace, except `but`. Returns their number."""
        now = clock.now(db)
        locked = "WHERE person_id = %(person)s AND ended_at IS NULL AND id <> %(but)s ORDER BY id FOR NO KEY UPDATE"
        rows = db.find(cls, locked, person=person_id, but=but)
        for row in rows:
            row.ended_at = now
        if rows:
            acts.record(db, by, "person.signed_out", person_id, {"sign_ins": [row.id for row in rows]})
        return len(rows)


@dataclass(frozen=True)
class OpenSignIn:
    """An open sign-in, looked up by the secret in its cookie."""

    person: PersonPrincipal
    method: str


def find(secret: str) -> OpenSignIn | None:
    """Return the open sign-in with this secret, or None. Nothing is cached: role and groups are current."""
    with transaction() as db:
        rows = db.rows(_FIND, digest=sha256(secret), pause=timedelta(seconds=SEEN_SECONDS))
    if not rows:
        return None
    [(sign_in_id, workspace_id, person_id, method, makers, is_due, role, role_limit, source, group_ids)] = rows
    if is_due:
        with transaction(workspace_id) as db:
            db.write(_SEEN, id=sign_in_id, idle=timedelta(seconds=settings().sign_in_idle_seconds))
    limit = None if source == source_name(method) else role_limit
    groups = frozenset(group_ids)
    person = of_person(person_id, workspace_id, role, groups, sign_in_id=sign_in_id, limit=limit, makers=makers or ())
    return OpenSignIn(person, method)
