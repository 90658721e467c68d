"""Environments: where the tools of a session run. Each workspace is born with one, `default`: our own workers."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, Invalid, NotFound
from models.workspace.api_key import ApiKey

BUILT_IN = "default"
"""The name of the environment that every workspace is born with."""

PACKAGES = ("apt", "cargo", "gem", "go", "npm", "pip")

WORKERS: dict[str, Any] = {
    "type": "cloud",
    "networking": {"type": "limited", "allow_mcp_servers": False, "allow_package_managers": False, "allowed_hosts": []},
    "packages": {"type": "packages", **{manager: [] for manager in PACKAGES}},
}
"""Our workers, without network and without installed packages."""
SELF_HOSTED: dict[str, Any] = {"type": "self_hosted"}
"""The client's own workers: they poll for work, run the built-in tools and post the results."""


class Environment(Base):
    """Where tools run. Archived ones take no new sessions; those that have any cannot be deleted."""

    __tablename__ = "environment"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    name: Mapped[str]
    description: Mapped[str | None]
    config: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """The wire's `config`, in full."""
    metadata_: Mapped[dict[str, str]] = mapped_column("metadata", JSONB)
    built_in: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    archived_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("environment_newest", "workspace_id", "created_at", "id"),)

    @classmethod
    def create(
        cls,
        db: Db,
        principal: Principal,
        *,
        name: str,
        description: str | None = None,
        metadata: dict[str, str] | None = None,
        self_hosted: bool = False,
    ) -> "Environment":
        """A new environment of our workers, or of the client's, in the principal's workspace."""
        return cls._insert(db, principal, name, description, metadata or {}, built_in=False, self_hosted=self_hosted)

    @classmethod
    def build_in(cls, db: Db, principal: Principal) -> "Environment":
        """The environment that a workspace is born with."""
        return cls._insert(db, principal, BUILT_IN, "Assent's own workers", {}, built_in=True)

    @classmethod
    def _insert(
        cls,
        db: Db,
        principal: Principal,
        name: str,
        description: str | None,
        metadata: dict[str, str],
        *,
        built_in: bool,
        self_hosted: bool = False,
    ) -> "Environment":
        now = clock.now(db)
        row = cls(
            id=ids.new("env"),
            workspace_id=principal.workspace_id,
            name=name,
            description=description,
            config=SELF_HOSTED if self_hosted else WORKERS,
            metadata_=metadata,
            built_in=built_in,
            created_at=now,
            updated_at=now,
        )
        db.insert(row)
        acts.record(db, principal, "environment.created", row.id, {"name": Text(name), "built_in": built_in})
        return row

    @classmethod
    def find(cls, db: Db, environment_id: str) -> "Environment":
        """The environment as it is. Raises NotFound."""
        return db.get(cls, environment_id) or _missing(environment_id)

    @classmethod
    def kept(cls, db: Db, environment_id: str) -> "Environment | None":
        """The environment, kept from deletion until the transaction ends."""
        return db.first(cls, "WHERE id = %(id)s FOR KEY SHARE", id=environment_id)

    @classmethod
    def for_session(cls, db: Db, environment_id: str) -> "Environment":
        """The environment, kept from deletion until the transaction ends. Raises Invalid if no session may have it."""
        row = cls.kept(db, environment_id)
        if row is None:
            raise Invalid("environment_id", "there is no such environment; GET /v1/environments lists those there are.")
        if row.archived_at:
            raise Invalid("environment_id", "this environment is archived; choose one that is not.")
        return row

    @classmethod
    def lock(cls, db: Db, environment_id: str) -> "Environment":
        """The environment, locked for a change. Raises NotFound."""
        return db.get(cls, environment_id, lock=True) or _missing(environment_id)

    def update(self, db: Db, principal: Principal, changes: dict[str, Any]) -> None:
        """Set `name`, `description`, `metadata` (a patch; null and empty delete), as `changes` has them.

        Raises Conflict if it is archived, Invalid if `type` is given and is another than it has: its sessions rely on it.
        """
        if self.archived_at:
            raise Conflict("An archived environment cannot be changed.")
        if changes.get("type") not in {None, self.config["type"]}:
            raise Invalid("config.type", f"cannot change: it is {self.config['type']!r}; create another environment instead.")
        new = {k: v for k, v in changes.items() if k in {"name", "description"} and getattr(self, k) != v}
        if "metadata" in changes:
            merged = {k: v for k, v in {**self.metadata_, **changes["metadata"]}.items() if v}
            if merged != self.metadata_:
                new["metadata_"] = merged
        if not new:
            return
        for key, value in new.items():
            setattr(self, key, value)
        self.updated_at = clock.now(db)
        acts.record(db, principal, "environment.updated", self.id, {"fields": sorted(k.rstrip("_") for k in new)})

    def archive(self, db: Db, principal: Principal) -> None:
        """No new sessions from now on; again is nothing. Raises Conflict for the built-in one."""
        self._refuse_built_in("archived")
        if self.archived_at is None:
            self.archived_at = self.updated_at = clock.now(db)
            acts.record(db, principal, "environment.archived", self.id, {"name": Text(self.name)})

    def delete(self, db: Db, principal: Principal) -> None:
        """Remove the row, and revoke its keys. Raises Conflict for the built-in one and while sessions refer to it."""
        self._refuse_built_in("deleted")
        # A session is created under a share lock on this row, so one that appears now waits until this row is gone.
        db.get(Environment, self.id, lock=True)
        if db.rows("SELECT FROM session WHERE environment_id = %(id)s LIMIT 1", id=self.id):
            raise Conflict("Sessions refer to this environment: delete them first, or archive the environment instead.")
        ApiKey.revoke_all(db, self.id, by=principal)
        acts.record(db, principal, "environment.deleted", self.id, {"name": Text(self.name)})
        db.delete(self)

    @property
    def self_hosted(self) -> bool:
        """Whether the client's own workers run the tools of its sessions."""
        found: bool = self.config["type"] == "self_hosted"
        return found

    def _refuse_built_in(self, done: str) -> None:
        if self.built_in:
            raise Conflict(f"The built-in environment cannot be {done}.")


def _missing(environment_id: str) -> Environment:
    raise NotFound("environment", environment_id)
