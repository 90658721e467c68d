"""Responses about threads."""

from typing import Literal, Self

from api.door.responses import Page, ResponseModel, SessionId, ThreadId, Time
from api.v1.agents.responses import SessionAgent
from api.v1.sessions.responses import STATUSES
from api.v1.spending.amounts import ActiveUsage, ThreadStats
from models.database.rows import Db
from models.session import row as session


class Thread(ResponseModel):
    """A session's own thread."""

    id: ThreadId
    type: Literal["session_thread"]
    session_id: SessionId
    parent_thread_id: None
    agent: SessionAgent
    status: Literal["idle", "running", "rescheduling", "terminated"]
    stats: ThreadStats
    usage: ActiveUsage
    created_at: Time
    updated_at: Time
    archived_at: Time | None

    @classmethod
    def of(cls, db: Db, row: session.Session) -> Self:
        """Return a session's own thread."""
        return cls.from_row(
            row,
            id=row.thread_id,
            session_id=row.id,
            agent=SessionAgent.stored(**row.agent(db)),
            status=STATUSES[row.status],
            stats=ThreadStats.of(db, row, startup_seconds=0.0),
            usage=ActiveUsage.of(db, row),
        )


class ThreadPage(Page[Thread]):
    """The session's threads."""
