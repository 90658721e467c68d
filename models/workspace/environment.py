"""Environments: where the tools of a session run. Each workspace starts with one, `default`, which is Assent's own workers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.query import Query, select
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, Invalid, NotFound
from models.outbox.delivery import Caused, Delivery
from models.workspace.api_key import ApiKey

BUILT_IN = "default"
"""The name of the environment with which every workspace starts."""

PACKAGES = ("apt", "cargo", "gem", "go", "npm", "pip")

WORKERS: dict[str, Any] = {
    "type": "cloud",
    "networking": {"type": "limited", "allow_mcp_servers": False, "allow_package_managers": False, "allowed_hosts": []},
    "packages": {"type": "packages", **{manager: [] for manager in PACKAGES}},
}
"""Assent's own workers, without network and without installed packages."""
SELF_HOSTED: dict[str, Any] = {"type": "self_hosted"}
"""The client's own workers. They poll for work, run the built-in tools and post the results."""


@dataclass(frozen=True)
class NewEnvironment:
    """What somebody asks for in a new environment."""

    name: str
    description: str | None = None
    metadata: Mapping[str, str] | None = None
    self_hosted: bool = False
    """True if the client's own workers serve it, instead of Assent's."""


class Environment(Base):
    """An environment. An archived one refuses new sessions. One with sessions cannot be deleted."""

    __tablename__ = "environment"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    name: Mapped[str]
    description: Mapped[str | None]
    config: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """The wire's `config`, with all its fields."""
    metadata_: Mapped[dict[str, str]] = mapped_column("metadata", JSONB)
    built_in: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    archived_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("environment_newest", "workspace_id", "created_at", "id"),)

    @classmethod
    def create(cls, db: Db, principal: Principal, new: NewEnvironment, *, built_in: bool = False) -> "Environment":
        """Create an environment in the principal's workspace. `built_in`: the workspace starts with this environment."""
        now = clock.now(db)
        row = cls(
            id=ids.new("env"),
            workspace_id=principal.workspace_id,
            name=new.name,
            description=new.description,
            config=SELF_HOSTED if new.self_hosted else WORKERS,
            metadata_=dict(new.metadata or {}),
            built_in=built_in,
            created_at=now,
            updated_at=now,
        )
        db.insert(row)
        acts.record(db, principal, "environment.created", row.id, {"name": Text(new.name), "built_in": built_in})
        Delivery.cause(db, Caused("environment.created", row.id))
        return row

    @classmethod
    def find(cls, db: Db, environment_id: str) -> "Environment":
        """Return the environment. Raises NotFound."""
        return db.get(cls, environment_id) or _missing(environment_id)

    @classmethod
    def keeping(cls, environment_id: str | None) -> Query["Environment"]:
        """Return the query of an environment, with a lock that prevents its deletion until the transaction ends.

        None, and the name `default`, mean the environment with which the workspace began.
        """
        if environment_id in {None, BUILT_IN}:
            return select(cls, "WHERE built_in AND name = %(name)s FOR KEY SHARE", name=BUILT_IN)
        return select(cls, "WHERE id = %(id)s FOR KEY SHARE", id=environment_id)

    @staticmethod
    def for_session(rows: Sequence["Environment"]) -> "Environment":
        """Return the environment for a new session. `rows` are those of `keeping`. Raises Invalid if it is missing or archived."""
        if not rows:
            raise Invalid("environment_id", "there is no such environment; GET /v1/environments lists them.")
        if rows[0].archived_at:
            raise Invalid("environment_id", "this environment is archived; choose one that is not.")
        return rows[0]

    @classmethod
    def lock(cls, db: Db, environment_id: str) -> "Environment":
        """Return the environment, locked for a change. Raises NotFound."""
        return db.get(cls, environment_id, lock=True) or _missing(environment_id)

    def update(self, db: Db, principal: Principal, changes: dict[str, Any]) -> None:
        """Apply `changes` to `name`, `description` and `metadata` (a patch: null and empty values delete a pair).

        Raises Conflict if the environment is archived. Raises Invalid if `type` differs, since its sessions depend on the type.
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
        Delivery.cause(db, Caused("environment.updated", self.id))

    def archive(self, db: Db, principal: Principal) -> None:
        """Refuse new sessions from now on. Idempotent. Raises Conflict for the built-in environment."""
        self._refuse_built_in("archived")
        if self.archived_at is None:
            self.archived_at = self.updated_at = clock.now(db)
            acts.record(db, principal, "environment.archived", self.id, {"name": Text(self.name)})
            Delivery.cause(db, Caused("environment.archived", self.id))

    def delete(self, db: Db, principal: Principal) -> None:
        """Delete the row, and revoke its keys. Raises Conflict for the built-in environment, and while sessions refer to it."""
        self._refuse_built_in("deleted")
        # Waits for each transaction that creates a session here. Later ones wait for the deletion, at the lock of `keeping`.
        db.find(Environment, "WHERE id = %(id)s FOR UPDATE", id=self.id)
        if db.rows("SELECT FROM session WHERE environment_id = %(id)s LIMIT 1", id=self.id):
            raise Conflict("Sessions refer to this environment: delete them first, or archive the environment instead.")
        ApiKey.revoke_all(db, self.id, by=principal)
        acts.record(db, principal, "environment.deleted", self.id, {"name": Text(self.name)})
        Delivery.cause(db, Caused("environment.deleted", self.id))
        db.delete(self)

    @property
    def self_hosted(self) -> bool:
        """True if the client's own workers run the tools of its sessions."""
        return bool(self.config["type"] == "self_hosted")

    def _refuse_built_in(self, participle: str) -> None:
        if self.built_in:
            raise Conflict(f"The built-in environment cannot be {participle}.")


def _missing(environment_id: str) -> Environment:
    raise NotFound("environment", environment_id)
