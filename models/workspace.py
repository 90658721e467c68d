"""Workspaces: a tenant. Its row is the head of the audit chain for all that happens outside sessions."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models import clock
from models.db import Base, Db
from models.principal import Principal, system


class Workspace(Base):
    """A tenant. Every other row carries its id, and row-level security compares it with the transaction's workspace."""

    __tablename__ = "workspace"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    """The id once more, so that one policy fits every table."""
    name: Mapped[str]
    audit_seq: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    audit_head: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.CheckConstraint("workspace_id = id", name="workspace_is_its_own"),)

    @classmethod
    def create(cls, db: Db, name: str, *, by: Principal | None = None) -> "Workspace":
        """The workspace that this transaction was opened for, with its built-in environment.

        Row-level security lets a transaction write only its own workspace, so open it with the new id:

            with transaction(ids.new("wrkspc")) as db:
                workspace = Workspace.create(db, "Support")
        """
        # These two know of workspaces; an arrow back from here at import time would be a circle.
        from models import audit
        from models.environment import Environment

        workspace_id = db.execute(sa.text("SELECT current_setting('assent.workspace')")).scalar_one()
        assert workspace_id, "open the transaction with the new workspace's id"
        row = cls(id=workspace_id, workspace_id=workspace_id, name=name, created_at=clock.now(db), audit_seq=0, audit_head="")
        db.add(row)
        db.flush()
        by = by or system("workspace.create", workspace_id)
        audit.record(db, by, "workspace.created", row.id, {"name": name}, chain=row)
        Environment.build_in(db, by)
        return row
