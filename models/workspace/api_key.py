"""API keys and their scopes. A key's secret is shown once and stored as its SHA-256.

| scope | allows |
|---|---|
| `read` | every read: lists, single rows, streams, pending approvals |
| `agents` | create, change and archive agents and environments; change the tools, policies and MCP servers of a session |
| `sessions` | create, change, archive and delete sessions; send them messages, interrupts and results of client tools |
| `environment` | poll for work of self-hosted environments, acknowledge, renew and stop it; post results of client tools |
| `approvals` | decide: `user.tool_confirmation` events, `POST` under `/v1/approvals`; revoke grants; set `on_timeout: allow` |
| `reveal` | see the secrets in approvals and events (`?reveal=true`), simulate policies over inputs with secrets; audited |
| `admin` | change the workspace's policy; read, verify and export the audit |
| `metrics` | read the metrics of all workspaces (`GET /metrics`); no person has it, so only `assent database key` gives the first |

No scope contains another. A new key has `read`, `agents` and `sessions`: enough for a backend that runs agents, without the right
to decide approvals. An environment key, for the SDK's `EnvironmentWorker`, has `read` and `environment`. It serves the whole
workspace, or, bound to one environment, only the routes and rows that this environment's worker needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from models.audit import acts
from models.audit.principal import Principal, system
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Forbidden, Invalid, NotFound
from models.pure.key_secret import new_secret, sha256
from models.pure.times import rfc3339
from models.settings.networks import check_networks, covers

SCOPES = ("read", "agents", "sessions", "environment", "approvals", "reveal", "admin", "metrics")
DEFAULT_SCOPES = frozenset({"read", "agents", "sessions"})
ENVIRONMENT_SCOPES = frozenset({"read", "environment"})
"""The scopes of a key that is bound to an environment."""

_ROTATE_OTHERWISE = "rotate it as an admin who is signed in, or by a key without networks."
Status = Literal["active", "inactive", "expired", "archived"]
"""The SDK's words. `archived` is a revoked key, which cannot be used again."""


@dataclass(frozen=True)
class NewKey:
    """What somebody asks for in a new key."""

    name: str
    scopes: frozenset[str] | None = None
    """None: the default scopes, or those of a worker if the key is bound to an environment."""
    environment_id: str | None = None
    """Binds the key to an environment."""
    expires_at: datetime | None = None
    allowed_cidrs: Sequence[str] | None = None


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
    """The one environment that the key serves. No foreign key, since the key's row outlives the environment: it is revoked then."""
    allowed_cidrs: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """The networks from which the key may be used; None stands for all."""
    makers: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """Ids of the people behind the key: `Principal.people` of its creator. A key that a key created has that key's makers. None for
    a key of the operator's command line."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    expires_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    last_used_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Written at most once a minute."""
    disabled_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """The time at which the key was switched off. It can be switched on again."""
    revoked_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def create(cls, db: Db, new: NewKey, by: Principal | None = None) -> tuple["ApiKey", str]:
        """Create a key and return it with its secret, which cannot be read again.

        A key that a key creates ends no later and has no wider networks than its creator; by default it has the same limits. Raises
        Invalid for wider limits, unknown or no scopes, an expiry in the past, a malformed network, and an environment that does not
        exist or is not self-hosted.
        """
        by = by or system("api_key.create", db.workspace_id)
        now = clock.now(db)
        if new.expires_at is not None and new.expires_at <= now:
            raise Invalid("expires_at", "must be in the future; leave it out for a key that never expires.")
        expires_at, networks = _within_creator(db, by, new.expires_at, _networks(new.allowed_cidrs))
        if new.environment_id is not None:
            _check_bond(db, new.environment_id, new.scopes)
        secret = new_secret()
        row = cls(
            id=ids.new("key"),
            workspace_id=db.workspace_id,
            name=new.name,
            scopes=_in_order(new.scopes, new.environment_id),
            secret_sha256=sha256(secret),
            hint=secret[-4:],
            environment_id=new.environment_id,
            allowed_cidrs=networks,
            created_at=now,
            expires_at=expires_at,
            makers=list(by.people) or None,
        )
        db.insert(row)
        acts.record(db, by, "api_key.created", row.id, row._limits())
        return row, secret

    def _limits(self) -> dict[str, Any]:
        """Return what limits the key, for the audit."""
        expires_at = rfc3339(self.expires_at) if self.expires_at else None
        limits = {"environment_id": self.environment_id, "allowed_cidrs": self.allowed_cidrs, "expires_at": expires_at}
        return {"name": Text(self.name), "scopes": self.scopes} | {name: value for name, value in limits.items() if value}

    def status(self, now: datetime) -> Status:
        """Return the key's status at `now`."""
        if self.revoked_at is not None:
            return "archived"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "active" if self.disabled_at is None else "inactive"

    @classmethod
    def find(cls, db: Db, key_id: str, *, lock: bool = False) -> "ApiKey":
        """Return the key. Raises NotFound."""
        row = db.get(cls, key_id, lock=lock)
        if row is None:
            raise NotFound("api_key", key_id)
        return row

    @classmethod
    def revoke(cls, db: Db, key_id: str, *, by: Principal) -> "ApiKey":
        """Revoke a key for good. Idempotent. Raises NotFound."""
        row = cls.find(db, key_id, lock=True)
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
        row = cls.find(db, key_id, lock=True)
        if name is not None and name != row.name:
            acts.record(db, by, "api_key.renamed", row.id, {"from": Text(row.name), "to": Text(name)})
            row.name = name
        if status == "archived":
            return cls.revoke(db, key_id, by=by)
        if status is not None and row.revoked_at is not None:
            raise Invalid("status", "this key is archived and cannot change any more: create another one.")
        if status is not None and (status == "inactive") != (row.disabled_at is not None):
            row.disabled_at = clock.now(db) if status == "inactive" else None
            acts.record(db, by, "api_key.disabled" if row.disabled_at else "api_key.enabled", row.id, {"name": Text(row.name)})
        return row

    @classmethod
    def rotate(cls, db: Db, key_id: str, *, overlap: timedelta, by: Principal) -> tuple["ApiKey", str]:
        """Create a key with the old key's name, scopes, limits and lifetime; return it with its secret. The old key ends after
        `overlap`.

        A new key that a key creates ends no later than its creator. Raises NotFound; Invalid if the old key is not active, or has
        wider networks than the key that rotates it.
        """
        old, now = cls.find(db, key_id, lock=True), clock.now(db)
        if old.status(now) != "active":
            raise Invalid("", f"This key is {old.status(now)}: only an active key can be rotated.")
        expires_at = now + (old.expires_at - old.created_at) if old.expires_at else None
        if (creator := _creator(db, by)) is not None:
            if creator.allowed_cidrs and not old.allowed_cidrs:
                raise Invalid("", f"This key has no networks, and the key that rotates it has: {_ROTATE_OTHERWISE}")
            expires_at = min((end for end in (expires_at, creator.expires_at) if end), default=None)
        like = NewKey(old.name, frozenset(old.scopes), old.environment_id, expires_at, old.allowed_cidrs)
        new, secret = cls.create(db, like, by=by)
        new.makers = new.makers or old.makers
        ends = now + overlap
        old.expires_at = min(ends, old.expires_at) if old.expires_at else ends
        acts.record(db, by, "api_key.rotated", old.id, {"to": new.id, "expires_at": rfc3339(old.expires_at)})
        return new, secret

    @classmethod
    def revoke_all(cls, db: Db, environment_id: str, *, by: Principal) -> None:
        """Revoke the keys that are bound to an environment."""
        for key in db.find(cls, "WHERE environment_id = %(id)s AND revoked_at IS NULL ORDER BY id", id=environment_id):
            cls.revoke(db, key.id, by=by)


def _networks(cidrs: Sequence[str] | None) -> list[str] | None:
    """Return the networks in canonical spelling. Raises Invalid."""
    try:
        return check_networks(cidrs)
    except ValueError as error:
        field, _, message = str(error).partition(": ")
        raise Invalid(field, message) from None


def check_lasting(db: Db, by: Principal) -> None:
    """Raise Forbidden if the principal is a key that ends or has networks: a person whom it lets in would have no such limits."""
    key = _creator(db, by)
    if key is not None and (key.expires_at or key.allowed_cidrs):
        limit = f"ends at {rfc3339(key.expires_at)}" if key.expires_at else f"is limited to {', '.join(key.allowed_cidrs or ())}"
        raise Forbidden(
            f"x-api-key: this key {limit}, and a person who signs in has no such limit: use a key without expires_at and "
            "allowed_cidrs, or invite as an admin who is signed in."
        )


def _creator(db: Db, by: Principal) -> ApiKey | None:
    """Return the key that acts; None if no key acts."""
    return ApiKey.find(db, by.id) if by.kind == "api_key" else None


def _within_creator(
    db: Db, by: Principal, expires_at: datetime | None, networks: list[str] | None
) -> tuple[datetime | None, list[str] | None]:
    """Return a new key's expiry and networks, by default those of the key that creates it. Raises Invalid for wider ones."""
    creator = _creator(db, by)
    if creator is None:
        return expires_at, networks
    if expires_at is not None and creator.expires_at is not None and expires_at > creator.expires_at:
        raise Invalid(
            "expires_at",
            f"must not be later than {rfc3339(creator.expires_at)}, when the key that creates this one ends; "
            "leave it out for that time.",
        )
    for position, network in enumerate(networks or ()):
        if creator.allowed_cidrs and not covers(creator.allowed_cidrs, network):
            raise Invalid(
                f"allowed_cidrs.{position}",
                f"{network} is outside {', '.join(creator.allowed_cidrs)}, the networks of the key that creates this one; "
                "leave allowed_cidrs out for those.",
            )
    return expires_at or creator.expires_at, networks or creator.allowed_cidrs


def _in_order(scopes: frozenset[str] | None, environment_id: str | None) -> list[str]:
    """Return a new key's scopes, the default ones for None, in the order of SCOPES. Raises Invalid."""
    if scopes is None:
        scopes = DEFAULT_SCOPES if environment_id is None else ENVIRONMENT_SCOPES
    if not scopes or not scopes <= set(SCOPES):
        raise Invalid("scopes", f"must be one or more of {', '.join(SCOPES)}.")
    return [scope for scope in SCOPES if scope in scopes]


def _check_bond(db: Db, environment_id: str, scopes: frozenset[str] | None) -> None:
    """Raise Invalid unless a key can be bound to this environment. A lock keeps the environment until the transaction ends."""
    if scopes not in {None, ENVIRONMENT_SCOPES}:
        raise Invalid("scopes", "of a key that is bound to an environment are read,environment: leave them out.")
    kind = db.value("SELECT config ->> 'type' FROM environment WHERE id = %(id)s FOR KEY SHARE", id=environment_id)
    if kind is None:
        raise Invalid("environment", "no environment of this workspace has this id; GET /v1/environments lists them.")
    if kind != "self_hosted":
        raise Invalid("environment", "Assent's own workers serve this environment, without a key. Name a self-hosted environment.")
