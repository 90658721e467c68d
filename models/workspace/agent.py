"""Agents and their versions. A version's body is written once; the agent's row says which version is the head.

The body is the wire's agent without `id`, `type`, `version` and dates, every default spelled out, so that a turn can
use it alone:

    {"name": str, "description": str | null, "model": {"id": str}, "system": str | null, "tools": [...],
     "permission_policy": POLICY?, "approval": APPROVAL?, "max_turns": int | null, "metadata": {str: str},
     "disable_parallel_tool_use": bool?, "mcp_servers": [{"type": "url", "name": str, "url": str}],
     "skills": [], "multiagent": null, "execution_identity": {"type": "service_account"}}

`tools` holds at most one agent toolset, its six tools resolved; client tools; and toolsets of MCP servers, by the names in
`mcp_servers`, of whose tools only those are named that are configured otherwise than the rest:

    {"type": "agent_toolset_20260401", "default_config": {"enabled": bool, "permission_policy": POLICY},
     "configs": [{"type": "bash", "name": "bash", "enabled": bool, "permission_policy": POLICY, "approval": APPROVAL?},
                 ... edit, read, write, glob, grep]}
    {"type": "custom", "name": str, "description": str, "input_schema": {...},
     "permission_policy": POLICY?, "approval": APPROVAL?, "result_timeout_seconds": float?}
    {"type": "mcp_toolset", "mcp_server_name": str,
     "default_config": {"enabled": bool, "permission_policy": POLICY, "policy_from": "toolset" | "default"},
     "configs": [{"name": str, "enabled": bool, "permission_policy": POLICY, "policy_from": ..., "approval": APPROVAL?}, ...]}

POLICY is a permission policy as `models.pure.policy.spelled` says it; for all but client tools it is always there, and
`"policy_from": "tool" | "toolset" | "default"` beside it says whose it is. APPROVAL is `{"timeout_seconds": float | null,
"on_timeout": "deny" | "end_run" | "allow" | null, "remind_after_seconds": float | null, "prompt": str | null}`. The body
itself may hold a `permission_policy`, whose rules hold for all tools and whose default for those with `policy_from`
`default`, and an `approval`, which holds where a tool's says nothing. A session's `agent` is this body, its overrides applied,
with `id`, `type` and `version` and without `metadata`. `models.policy.effective_tool` reads either.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.rows import Db, select
from models.database.tables import Base
from models.errors import Conflict, Invalid, NotFound
from models.pure.canonical import canonical

TOOLSET = "agent_toolset_20260401"
BUILTIN_TOOLS = ("bash", "edit", "read", "write", "glob", "grep")


class Agent(Base):
    """An agent: the head of its versions."""

    __tablename__ = "agent"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    version: Mapped[int]
    """The head, from 1."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    archived_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("agent_newest", "workspace_id", "created_at", "id"),)

    @classmethod
    def create(cls, db: Db, principal: Principal, body: dict[str, Any]) -> tuple["Agent", "AgentVersion"]:
        """A new agent with its version 1. `body` is in the normal form above."""
        now = clock.now(db)
        agent = cls(id=ids.new("agent"), workspace_id=principal.workspace_id, version=1, created_at=now, updated_at=now)
        db.insert(agent)
        acts.record(db, principal, "agent.created", agent.id, {"name": Text(body["name"])})
        return agent, agent._append(db, body)

    @classmethod
    def find(cls, db: Db, agent_id: str) -> "Agent":
        """The agent as it is. Raises NotFound."""
        return db.get(cls, agent_id) or _missing(agent_id)

    @classmethod
    def with_version(cls, db: Db, agent_id: str, version: int | None) -> tuple["Agent", "AgentVersion"]:
        """The agent with one version, the head by default. Raises NotFound."""
        named = {"id": agent_id, "version": version}
        agents, versions = db.read(select(cls, _AGENT, **named), select(AgentVersion, _VERSION, **named))
        if not agents:
            _missing(agent_id)
        [agent] = agents
        for found in versions:
            return agent, found
        raise NotFound(f"agent {agent_id} version", str(version))

    @classmethod
    def lock(cls, db: Db, agent_id: str) -> "Agent":
        """The agent, locked for a change. Raises NotFound."""
        return db.get(cls, agent_id, lock=True) or _missing(agent_id)

    def at(self, db: Db, version: int | None = None) -> "AgentVersion":
        """One version, the head by default. Raises NotFound."""
        number = self.version if version is None else version
        found = db.get(AgentVersion, self.id, number)
        if found is None:
            raise NotFound(f"agent {self.id} version", str(number))
        return found

    def update(self, db: Db, principal: Principal, changes: Mapping[str, Any], *, version: int | None = None) -> "AgentVersion":
        """A new head with `changes`: fields of the body; `metadata` is a patch. What changes nothing makes no version.

        Raises Conflict if the agent is archived or `version`, where given, is not the head.
        """
        if self.archived_at:
            raise Conflict("An archived agent cannot be changed.")
        if version is not None and version != self.version:
            said = f"version: the agent is at version {self.version}, not {version}; read it again, then repeat."
            raise Conflict(said, {"version": self.version})
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
        return self._append(db, body)

    def archive(self, db: Db, principal: Principal) -> None:
        """No new sessions from now on; those there are go on. Again is nothing."""
        if self.archived_at is None:
            self.archived_at = self.updated_at = clock.now(db)
            acts.record(db, principal, "agent.archived", self.id, {"version": self.version})

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
    """What an agent was at one version. Never changed."""

    __tablename__ = "agent_version"

    agent_id: Mapped[str] = mapped_column(sa.ForeignKey("agent.id"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def of_session(cls, db: Db, agent_id: str, number: int) -> "AgentVersion":
        """The version that a session of this workspace names. Kept in memory, since a version never changes."""
        found = _versions.get((agent_id, number))
        if found is None:
            found = db.get_one(cls, agent_id, number)
            if len(_versions) >= _VERSIONS:
                _versions.clear()
            _versions[agent_id, number] = found
        return found

    def snapshot(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What a session keeps of this version: its `agent`, as described above."""
        body = {k: v for k, v in {**self.body, **(overrides or {})}.items() if k != "metadata"}
        return {"id": self.agent_id, "type": "agent", "version": self.version, **body}


_versions: dict[tuple[str, int], AgentVersion] = {}


METADATA_PAIRS = 16


def patched(metadata: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    """`metadata` with `patch` over it; null deletes. Raises Invalid if more than METADATA_PAIRS are left."""
    merged = {k: v for k, v in {**metadata, **patch}.items() if v is not None}
    if len(merged) > METADATA_PAIRS:
        raise Invalid("metadata", f"at most {METADATA_PAIRS} pairs; this patch would leave {len(merged)}.")
    return merged


def _missing(agent_id: str) -> Agent:
    raise NotFound("agent", agent_id)
