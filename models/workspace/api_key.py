"""API keys: who may ask, and for what. The secret is shown once and stored as its SHA-256.

| scope | allows |
|---|---|
| `read` | everything that changes nothing: lists, single rows, streams, waiting approvals |
| `agents` | create, change and archive agents and environments; change the tools, policies and MCP servers of a session |
| `sessions` | create, change, archive and delete sessions; send them messages, interrupts and results of client tools |
| `environment` | poll for work of self-hosted environments, acknowledge, renew and stop it; post results of client tools |
| `approvals` | decide: `user.tool_confirmation` events, `POST` under `/v1/approvals`; revoke grants; set `on_timeout: allow` |
| `reveal` | see the secrets in approvals and events (`?reveal=true`), simulate policies over inputs with secrets; audited |
| `admin` | change the workspace's policy; read, verify and export the audit |

No scope contains another. A new key has `read`, `agents` and `sessions`: what a backend needs to run agents, and not
the right to decide what they ask for. An environment key, for the SDK's `EnvironmentWorker`, has `read` and `environment`:
of its whole workspace, or, bound to one environment, for what that environment's worker does there and for nothing else.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from models.audit import acts
from models.audit.principal import Principal, system
from models.audit.text import Text
from models.database import clock, ids
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Invalid, NotFound
from models.pure.key_secret import new_secret, sha256
from models.pure.networks import check_networks

SCOPES = ("read", "agents", "sessions", "environment", "approvals", "reveal", "admin")
DEFAULT_SCOPES = frozenset({"read", "agents", "sessions"})
ENVIRONMENT_SCOPES = frozenset({"read", "environment"})
"""Of a key that is bound to an environment."""

Status = Literal["active", "inactive", "expired", "archived"]
"""As the SDK spells it; `archived` is revoked, for good."""


class ApiKey(Base):
    """A key of a workspace."""

    __tablename__ = "api_key"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    name: Mapped[str]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(sa.Text))
    secret_sha256: Mapped[str] = mapped_column(unique=True)
    hint: Mapped[str]
    """The secret's last four characters, to tell keys apart in a list."""
    environment_id: Mapped[str | None]
    """The one environment that it serves. No foreign key: the row outlives the environment, and is revoked with it."""
    allowed_cidrs: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """The networks that it may be used from; None is all."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    expires_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    last_used_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Written at most once a minute."""
    disabled_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Since when it is switched off; it can be switched on again."""
    revoked_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def create(
        cls,
        db: Db,
        *,
        workspace_id: str,
        name: str,
        scopes: frozenset[str] | None = None,
        environment_id: str | None = None,
        expires_at: datetime | None = None,
        allowed_cidrs: Sequence[str] | None = None,
        by: Principal | None = None,
    ) -> tuple["ApiKey", str]:
        """A new key and its secret, which cannot be read again; with `environment_id`, bound to that environment.

        Raises Invalid on an unknown or empty set of scopes, an expiry in the past, what is no network, and an environment that is
        none or has no workers of its own.
        """
        now = clock.now(db)
        if expires_at is not None and expires_at <= now:
            raise Invalid("expires_at", "must be in the future; leave it out for a key that never expires.")
        networks = check_networks(allowed_cidrs)
        if environment_id is not None:
            _check_bond(db, environment_id, scopes)
        if scopes is None:
            scopes = DEFAULT_SCOPES if environment_id is None else ENVIRONMENT_SCOPES
        if not scopes or not scopes <= set(SCOPES):
            raise Invalid("scopes", f"must be one or more of {', '.join(SCOPES)}.")
        secret = new_secret()
        row = cls(
            id=ids.new("key"),
            workspace_id=workspace_id,
            name=name,
            scopes=[s for s in SCOPES if s in scopes],
            secret_sha256=sha256(secret),
            hint=secret[-4:],
            environment_id=environment_id,
            allowed_cidrs=networks,
            created_at=now,
            expires_at=expires_at,
        )
        db.insert(row)
        by = by or system("api_key.create", workspace_id)
        limits = {"environment_id": environment_id, "allowed_cidrs": networks, "expires_at": expires_at and expires_at.isoformat()}
        details = {"name": Text(name), "scopes": row.scopes} | {name: value for name, value in limits.items() if value}
        acts.record(db, by, "api_key.created", row.id, details)
        return row, secret

    def status(self, now: datetime) -> Status:
        """What it is at `now`."""
        if self.revoked_at is not None:
            return "archived"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "active" if self.disabled_at is None else "inactive"

    @classmethod
    def find(cls, db: Db, key_id: str) -> "ApiKey":
        """The key. Raises NotFound."""
        row = db.get(cls, key_id)
        if row is None:
            raise NotFound("api_key", key_id)
        return row

    @classmethod
    def _lock(cls, db: Db, key_id: str) -> "ApiKey":
        row = db.get(cls, key_id, lock=True)
        if row is None:
            raise NotFound("api_key", key_id)
        return row

    @classmethod
    def revoke(cls, db: Db, key_id: str, *, by: Principal) -> "ApiKey":
        """End a key's life. Idempotent. Raises NotFound."""
        row = cls._lock(db, key_id)
        if row.revoked_at is None:
            row.revoked_at = clock.now(db)
            acts.record(db, by, "api_key.revoked", row.id, {"name": Text(row.name)})
        return row

    @classmethod
    def change(
        cls,
        db: Db,
        key_id: str,
        *,
        name: str | None = None,
        status: Literal["active", "inactive", "archived"] | None = None,
        by: Principal,
    ) -> "ApiKey":
        """Rename a key, switch it off or on, or revoke it. Idempotent. Raises NotFound; Invalid for a revoked key's `status`."""
        row = cls._lock(db, key_id)
        if name is not None and name != row.name:
            acts.record(db, by, "api_key.renamed", row.id, {"from": Text(row.name), "to": Text(name)})
            row.name = name
        if status == "archived":
            return cls.revoke(db, key_id, by=by)
        if status is not None and row.revoked_at is not None:
            raise Invalid("status", "this key is archived, which is for good: create another one.")
        if status is not None and (status == "inactive") != (row.disabled_at is not None):
            row.disabled_at = clock.now(db) if status == "inactive" else None
            acts.record(db, by, "api_key.disabled" if row.disabled_at else "api_key.enabled", row.id, {"name": Text(row.name)})
        return row

    @classmethod
    def rotate(cls, db: Db, key_id: str, *, overlap: timedelta, by: Principal) -> tuple["ApiKey", str]:
        """A new key with the old one's name, rights, limits and length of life, and its secret. The old one ends after `overlap`.

        Raises NotFound; Invalid if the old one opens nothing any more.
        """
        old, now = cls._lock(db, key_id), clock.now(db)
        if old.status(now) != "active":
            raise Invalid("", f"This key is {old.status(now)}: only an active key can be rotated.")
        lives = old.expires_at - old.created_at if old.expires_at else None
        new, secret = cls.create(
            db,
            workspace_id=old.workspace_id,
            name=old.name,
            scopes=frozenset(old.scopes),
            environment_id=old.environment_id,
            expires_at=now + lives if lives else None,
            allowed_cidrs=old.allowed_cidrs,
            by=by,
        )
        ends = now + overlap
        old.expires_at = min(ends, old.expires_at) if old.expires_at else ends
        acts.record(db, by, "api_key.rotated", old.id, {"to": new.id, "expires_at": old.expires_at.isoformat()})
        return new, secret

    @classmethod
    def revoke_all(cls, db: Db, environment_id: str, *, by: Principal) -> None:
        """End the lives of the keys that are bound to an environment."""
        for key in db.find(cls, "WHERE environment_id = %(id)s AND revoked_at IS NULL ORDER BY id", id=environment_id):
            cls.revoke(db, key.id, by=by)


def _check_bond(db: Db, environment_id: str, scopes: frozenset[str] | None) -> None:
    """Raise Invalid unless a key can be bound to this environment, which cannot go before the transaction ends."""
    if scopes not in {None, ENVIRONMENT_SCOPES}:
        raise Invalid("scopes", "of a key that is bound to an environment are read,environment: leave them out.")
    kind = db.value("SELECT config ->> 'type' FROM environment WHERE id = %(id)s FOR KEY SHARE", id=environment_id)
    if kind is None:
        raise Invalid("environment", "there is none of this id in the workspace; GET /v1/environments lists those there are.")
    if kind != "self_hosted":
        raise Invalid("environment", "our own workers run the tools of this one: it needs no key. Bind to a self-hosted one.")
