"""Agents and their versions. A version's body never changes; the agent's row names the newest version, the head.

The body is the wire's agent without `id`, `type`, `version` and dates, with every default filled in, so that a turn needs nothing
else:

    {"name": str, "description": str | null, "model": {"id": str}, "system": str | null, "tools": [...],
     "permission_policy": POLICY?, "approval": APPROVAL?, "max_turns": int | null, "metadata": {str: str},
     "disable_parallel_tool_use": bool?, "chat_approvals": bool?, "completion_approvals": ("text" | "tools")?,
     "mcp_servers": [{"type": "url", "name": str, "url": str}], "skills": [], "multiagent": MULTIAGENT | null,
     "execution_identity": {"type": "service_account"}}

`models.workspace.roster` describes MULTIAGENT, and `models.pure.json.property_order` a `property_order`.

`tools` holds at most one agent toolset, with its six tools resolved; client tools; and toolsets of MCP servers, by the names in
`mcp_servers`. The `configs` of an MCP toolset list only the tools that differ from `default_config`:

    {"type": "agent_toolset_20260401", "default_config": {"enabled": bool, "permission_policy": POLICY},
     "configs": [{"type": "bash", "name": "bash", "enabled": bool, "permission_policy": POLICY, "approval": APPROVAL?},
                 ... edit, read, write, glob, grep]}
    {"type": "custom", "name": str, "description": str, "input_schema": {...}, "property_order": {...}?,
     "permission_policy": POLICY?, "approval": APPROVAL?, "result_timeout_seconds": float?}
    {"type": "mcp_toolset", "mcp_server_name": str,
     "default_config": {"enabled": bool, "permission_policy": POLICY, "policy_from": "toolset" | "default"},
     "configs": [{"name": str, "enabled": bool, "permission_policy": POLICY, "policy_from": ..., "approval": APPROVAL?}, ...]}

POLICY is a permission policy as `models.pure.policy.spelled` returns it. Every tool but a client tool has one, and
`"policy_from": "tool" | "toolset" | "default"` beside it names its origin. APPROVAL is `{"timeout_seconds": float | null,
"on_timeout": "deny" | "end_run" | "allow" | null, "remind_after_seconds": float | null, "prompt": str | null}`. The body itself may
have a `permission_policy`: its rules apply to all tools, its default to tools with `policy_from` `default`. The body's `approval`
applies to every field that a tool's leaves out. A session's `agent` is this body with the session's overrides, with `id`, `type`
and `version` and without `metadata`. `models.policy.effective_tool` reads both forms.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.query import select
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, Invalid, NotFound
from models.outbox.delivery import Caused, Delivery
from models.pure.json.canonical import canonical

TOOLSET = "agent_toolset_20260401"
BUILTIN_TOOLS = ("bash", "edit", "read", "write", "glob", "grep")


class Agent(Base):
    """An agent: the head of its versions."""

    __tablename__ = "agent"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    version: Mapped[int]
    """The newest version, from 1."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    archived_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("agent_newest", "workspace_id", "created_at", "id"),)

    @classmethod
    def create(cls, db: Db, principal: Principal, body: dict[str, Any]) -> tuple["Agent", "AgentVersion"]:
        """Create an agent with version 1. `body` has the form above."""
        now = clock.now(db)
        agent = cls(id=ids.new("agent"), workspace_id=principal.workspace_id, version=1, created_at=now, updated_at=now)
        db.insert(agent)
        acts.record(db, principal, "agent.created", agent.id, {"name": Text(body["name"])})
        Delivery.cause(db, Caused("agent.created", agent.id))
        return agent, agent._append(db, body)

    @classmethod
    def find(cls, db: Db, agent_id: str) -> "Agent":
        """Return the agent. Raises NotFound."""
        return db.get(cls, agent_id) or _missing(agent_id)

    @classmethod
    def with_version(cls, db: Db, agent_id: str, version: int | None) -> tuple["Agent", "AgentVersion"]:
        """Return the agent with one of its versions, by default the head. Raises NotFound."""
        values = {"id": agent_id, "version": version}
        agents, versions = db.read(select(cls, _AGENT, **values), select(AgentVersion, _VERSION, **values))
        if not agents:
            _missing(agent_id)
        if not versions:
            raise NotFound(f"agent {agent_id} version", str(version))
        return agents[0], versions[0]

    @classmethod
    def in_field(cls, db: Db, agent_id: str, version: int | None, *, field: str = "agent") -> tuple["Agent", "AgentVersion"]:
        """Return the agent that a request names in `field`, with one version, by default the newest. Raises Invalid."""
        try:
            return cls.with_version(db, agent_id, version)
        except NotFound as missing:
            raise Invalid(field, f"{missing} GET /v1/agents lists them.") from None

    @classmethod
    def lock(cls, db: Db, agent_id: str) -> "Agent":
        """Return the agent, locked for a change. Raises NotFound."""
        return db.get(cls, agent_id, lock=True) or _missing(agent_id)

    def at(self, db: Db, version: int | None = None) -> "AgentVersion":
        """Return one version, by default the head. Raises NotFound."""
        number = self.version if version is None else version
        row = db.get(AgentVersion, self.id, number)
        if row is None:
            raise NotFound(f"agent {self.id} version", str(number))
        return row

    def update(self, db: Db, principal: Principal, changes: Mapping[str, Any], *, version: int | None = None) -> "AgentVersion":
        """Add a version with `changes` (fields of the body) and return the head. `metadata` is a patch. Equal values add nothing.

        Raises Conflict if the agent is archived, or if `version` is set and is not the head.
        """
        if self.archived_at:
            raise Conflict("An archived agent cannot be changed.")
        if version is not None and version != self.version:
            message = f"version: the agent is at version {self.version}, not {version}; read it again, then repeat."
            raise Conflict(message, {"version": self.version})
        head = self.at(db)
        body = {**head.body, **changes}
        if "metadata" in changes:
            body["metadata"] = patched(head.body["metadata"], changes["metadata"])
        if canonical(body) == canonical(head.body):
            return head
        self.version += 1
        self.updated_at = clock.now(db)
        fields = sorted(k for k in changes if canonical(body[k]) != canonical(head.body.get(k)))
        acts.record(db, principal, "agent.updated", self.id, {"version": self.version, "fields": fields})
        Delivery.cause(db, Caused("agent.updated", self.id))
        return self._append(db, body)

    def archive(self, db: Db, principal: Principal) -> None:
        """Refuse new sessions from now on; existing ones continue. Idempotent."""
        if self.archived_at is None:
            self.archived_at = self.updated_at = clock.now(db)
            acts.record(db, principal, "agent.archived", self.id, {"version": self.version})
            Delivery.cause(db, Caused("agent.archived", self.id))

    def _append(self, db: Db, body: dict[str, Any]) -> "AgentVersion":
        row = AgentVersion(
            agent_id=self.id,
            version=self.version,
            workspace_id=self.workspace_id,
            body=body,
            created_at=self.updated_at,
        )
        db.insert(row)
        return row


_AGENT = "WHERE id = %(id)s"
_VERSION = """
    WHERE agent_id = %(id)s AND version = coalesce(%(version)s::int, (SELECT version FROM agent WHERE id = %(id)s))
"""
_VERSIONS = 1000


class AgentVersion(Base):
    """One version of an agent. Immutable."""

    __tablename__ = "agent_version"

    agent_id: Mapped[str] = mapped_column(sa.ForeignKey("agent.id"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def of_session(cls, db: Db, agent_id: str, number: int) -> "AgentVersion":
        """Return the version of a session in this workspace. Cached in the process, since a version never changes."""
        row = _versions.get((agent_id, number))
        if row is None:
            row = db.get_one(cls, agent_id, number)
            if len(_versions) >= _VERSIONS:
                _versions.clear()
            _versions[agent_id, number] = row
        return row

    def snapshot(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the `agent` of a session with this version, as described above.

        Overrides replace fields as a whole, but an overridden model keeps the agent's excluded providers beside its own.
        """
        body = {k: v for k, v in {**self.body, **(overrides or {})}.items() if k != "metadata"}
        excluded = [name for model in (self.body["model"], body["model"]) for name in model.get("exclude_providers") or []]
        if excluded:
            body["model"] = {**body["model"], "exclude_providers": list(dict.fromkeys(excluded))}
        return {"id": self.agent_id, "type": "agent", "version": self.version, **body}


_versions: dict[tuple[str, int], AgentVersion] = {}


METADATA_PAIRS = 16


def patched(metadata: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    """Return `metadata` with `patch` applied; null deletes a pair. Raises Invalid if more than METADATA_PAIRS are left."""
    merged = {k: v for k, v in {**metadata, **patch}.items() if v is not None}
    if len(merged) > METADATA_PAIRS:
        raise Invalid("metadata", f"at most {METADATA_PAIRS} pairs; there would be {len(merged)}.")
    return merged


def _missing(agent_id: str) -> Agent:
    raise NotFound("agent", agent_id)
