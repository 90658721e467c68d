"""Workspaces, the tenants. A workspace's row carries the head of the audit chain for acts outside sessions."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.audit import acts
from models.audit.principal import Principal, system
from models.audit.text import Text
from models.database import clock
from models.database.columns import Mapped, mapped_column
from models.database.exchange import Statement
from models.database.rows import Db
from models.database.tables import Base, Hex
from models.pure.json.canonical import canonical, canonical_text
from models.workspace.environment import NewEnvironment


class Workspace(Base):
    """A tenant. Every other row carries its id, and row-level security compares it with the transaction's workspace."""

    __tablename__ = "workspace"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    """Equals `id`, so that the same row-level policy fits every table."""
    name: Mapped[str]
    policy: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The permission policy for all agents, as `models.pure.policy.policy_as_json` returns it."""
    approval: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The approval settings for fields that neither tool nor agent sets."""
    model: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """Defaults of agents' models: `{"fallbacks": [...], "exclude_providers": [...]}`."""
    chat_words: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The workspace's own chat words by meaning, as `models.pure.chat.check` returns them."""
    denial_reasons: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    """The workspace's own reasons for a denial: `models.workspace.denial_reasons`. Null: the built-in ones."""
    retention: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """How long rows are kept, in days: `{"audit_days": 730, "archived_days": 365}`. What it does not name is kept for ever.

    `archive_after_days`: the age at which a session's content goes to the archive, `ARCHIVE_AFTER_DAYS` in SQL; null: never."""
    audit_seq: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    audit_head: Mapped[str] = mapped_column(Hex, default="")
    seal_alarm: Mapped[str | None]
    """Why a sealer refuses to sign the workspace's audit, for `/readyz`; None if none does."""
    seal_stopped: Mapped[str | None]
    """Why no sealer has sealed the workspace's audit for a while; None if one has."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.CheckConstraint("workspace_id = id", name="workspace_is_its_own"),)

    @classmethod
    def create(cls, db: Db, name: str, *, by: Principal | None = None) -> "Workspace":
        """Create the workspace for which this transaction was opened, with its built-in environment.

        Row-level security lets a transaction write only its own workspace, so open it with the new id:

            with transaction(ids.new("wrkspc")) as db:
                workspace = Workspace.create(db, "Support")
        """
        from models.workspace.environment import BUILT_IN, Environment

        workspace_id = db.workspace_id
        assert workspace_id, "open the transaction with the new workspace's id"
        row = cls(id=workspace_id, workspace_id=workspace_id, name=name, created_at=clock.now(db), audit_seq=0, audit_head="")
        db.insert(row)
        by = by or system("workspace.create", workspace_id)
        acts.record(db, by, "workspace.created", row.id, {"name": Text(name)})
        Environment.create(db, by, NewEnvironment(name=BUILT_IN, description="Assent's own workers"), built_in=True)
        return row

    @staticmethod
    def policies(db: Db) -> dict[str, Any]:
        """Return the columns `policy`, `approval`, `model` and `chat_words` of the transaction's workspace, by name."""
        return as_policies(db.read(POLICIES)[0])

    @classmethod
    def change_policies(cls, db: Db, principal: Principal, changes: Mapping[str, Any]) -> "Workspace":
        """Apply `changes` to the columns of `policies`, `retention` and `denial_reasons`. Equal values change nothing."""
        row = db.get_one(cls, principal.workspace_id, lock=True)
        # Compared in canonical form, since 1 and True are equal in Python.
        new = {name: value for name, value in changes.items() if canonical(value) != canonical(getattr(row, name))}
        details = {
            f"{name}.{which}": Text(canonical_text(policy))
            for name, value in new.items()
            for which, policy in (("from", getattr(row, name)), ("to", value))
        }
        for name, value in new.items():
            setattr(row, name, value)
        if new:
            acts.record(db, principal, "policy.changed", row.id, details)
        return row


ARCHIVE_AFTER_DAYS = """CASE
    WHEN workspace.retention ? 'archive_after_days' THEN (workspace.retention ->> 'archive_after_days')::integer ELSE 30
END"""
"""SQL for a workspace's `archive_after_days`; null: never."""
_ENABLED = "WHERE workspace_id = current_setting('assent.workspace') AND state = 'enabled'"
_POLICIES = f"""
    SELECT policy, approval, model, chat_words,
        EXISTS (SELECT FROM endpoint {_ENABLED}) OR EXISTS (SELECT FROM channel {_ENABLED}), assent_now()
    FROM workspace WHERE id = current_setting('assent.workspace')
"""  # noqa: S608 - text of our own
POLICIES = Statement(_POLICIES, {})
"""Reads the policies, whether an endpoint or a channel is enabled, and the time. Can share a round trip with other statements."""


def as_policies(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the rows of POLICIES as `Workspace.policies` does."""
    [(policy, approval, model, chat_words, *_)] = rows
    return {"policy": policy, "approval": approval, "model": model, "chat_words": chat_words}
