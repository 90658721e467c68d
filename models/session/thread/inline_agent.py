"""Inline agents: the agents that a coordinator defined itself, each for one thread."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base

_BODIES = 1000


class InlineAgent(Base):
    """The agent of one thread, in a row of its own, because every lock of a session reads its threads. Never changed."""

    __tablename__ = "inline_agent"

    session_id: Mapped[str] = mapped_column(primary_key=True)
    thread_id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """A session's `agent`, as `models.workspace.agent` describes it, without id and version and with the type `inline`."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def body_of(cls, db: Db, session_id: str, thread_id: str) -> dict[str, Any]:
        """Return the agent of a thread in this workspace. Cached in the process, since the agent never changes."""
        key = db.workspace_id, session_id, thread_id
        if key not in _bodies:
            if len(_bodies) >= _BODIES:
                _bodies.clear()
            _bodies[key] = db.get_one(cls, session_id, thread_id).body
        return _bodies[key]


_bodies: dict[tuple[str, str, str], dict[str, Any]] = {}
