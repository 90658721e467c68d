"""Threads: conversations of one agent within a session. Each has its own turns, calls, messages and history.

The first thread of a session is the session's own, and is made with it. All threads of a session share its lock.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import Mapped, mapped_column
from models.database.query import Query, select
from models.database.rows import Db
from models.database.tables import Base
from models.pure.text.path import path_in_words
from models.session.thread.progress import Progress

MAX_UNREAD = 100
"""Most messages that may wait in one thread. The next turn reads all of them."""


class Thread(Progress, Base):
    """A conversation within a session. The states are in `models.pure.states.THREAD`. It changes only under the session's lock."""

    __tablename__ = "thread"

    session_id: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    parent_id: Mapped[str | None]
    """The thread that began this one. None: the session's own thread."""
    agent_id: Mapped[str]
    agent_version: Mapped[int]
    name: Mapped[str]
    """The agent's name."""
    inline: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True if the coordinator defined the agent itself: `InlineAgent`. Agent and version are then the coordinator's."""
    turn_id: Mapped[str | None]
    """The turn that is queued, running, or whose calls are being settled."""
    turn_number: Mapped[int] = mapped_column(default=0)
    """The number of that turn, from 1 within the thread."""
    turn_count: Mapped[int] = mapped_column(default=0)
    """Turns since the last user message; `max_turns` limits it."""
    trace: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The present or last run in a trace: `models.database.trace.Run`. None if nobody traces it."""
    cap_approval_id: Mapped[str | None]
    """The question about money for which the thread waited last. Threads that reach the same cap wait for one question."""
    unread: Mapped[int] = mapped_column(default=0)
    """Number of messages, from users and other threads, that no turn has read yet."""
    context_tokens: Mapped[int] = mapped_column(default=0, server_default="0")
    """Tokens of the last request and its reply, with which the next request begins."""
    context_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """End of that request."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """When the thread's status or turn last changed."""
    archived_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def of_session(cls, session_id: str) -> "Query[Thread]":
        """Return the query of a session's threads, its own first."""
        return select(cls, f"WHERE session_id = %(id)s {_OWN_FIRST}", id=session_id)

    @classmethod
    def open_of(cls, session_id: str) -> "Query[Thread]":
        """Return the same query without archived threads of sub-agents, of which a session may have any number."""
        return select(cls, f"WHERE session_id = %(id)s AND {_OPEN} {_OWN_FIRST}", id=session_id)

    @classmethod
    def path_of(cls, db: Db, session_id: str, thread_id: str) -> "list[Thread]":
        """Return a thread and those above it: the session's own first. Reads none that this transaction has."""
        path = [db.get_one(cls, session_id, thread_id)]
        while parent_id := path[0].parent_id:
            path.insert(0, db.get_one(cls, session_id, parent_id))
        return path

    @classmethod
    def path_words(cls, db: Db, session_id: str, thread_id: str) -> str:
        """Return the path to a thread's agent in words, as `path_of` reads it: `Coordinator › Researcher`."""
        return path_in_words(thread.name for thread in cls.path_of(db, session_id, thread_id))

    @classmethod
    def read_ahead(cls, db: Db, rows: Iterable[Any]) -> None:
        """Read the threads of many rows, each of a session and a thread, at once. `path_of` then reads none of them."""
        pairs = {(row.session_id, thread_id) for row in rows for thread_id in (row.thread_id, own_id(row.session_id))}
        if pairs:
            session_ids, thread_ids = zip(*sorted(pairs), strict=True)
            db.find(cls, _AMONG, sessions=list(session_ids), threads=list(thread_ids))

    @staticmethod
    def active_sums(db: Db, session_ids: Sequence[str], at: datetime) -> dict[str, float]:
        """Return the active time of all threads together, in seconds up to `at`, by session."""
        return dict(db.rows(_ACTIVE_SUMS, sessions=list(session_ids), at=at))

    @staticmethod
    def waiting_since(db: Db, session_ids: Sequence[str]) -> dict[str, datetime]:
        """Return since when the threads of these sessions wait: by session, the oldest wait. A session without one is left out."""
        return dict(db.rows(_WAITING_SINCE, sessions=list(session_ids))) if session_ids else {}


_OWN_FIRST = "ORDER BY parent_id IS NOT NULL, created_at, id"
_OPEN = "(parent_id IS NULL OR status <> 'terminated')"
_ACTIVE_SUMS = """
    SELECT session_id, sum(active_seconds + coalesce(greatest(extract(epoch FROM %(at)s - active_since), 0), 0))::float
    FROM thread WHERE session_id = ANY(%(sessions)s) GROUP BY session_id
"""

_WAITING_SINCE = """
    SELECT session_id, min(updated_at) FROM thread WHERE session_id = ANY(%(sessions)s) AND status = 'waiting' GROUP BY session_id
"""


def own_id(session_id: str) -> str:
    """Return the id of a session's own thread: the session's id with another prefix."""
    return "sthr_" + session_id.partition("_")[2]


_OF = f"ANY (ARRAY(SELECT turn_id FROM thread WHERE session_id = {{}} AND {_OPEN}))"  # noqa: S608 - a condition of our own
PRESENT_TURNS = _OF.format("%(session)s")
"""The condition on the id of a turn that is the present one of an open thread of this session."""
PRESENT_TURNS_OF_EACH = _OF.format("ANY (ARRAY(SELECT unnest(CAST(%(sessions)s AS text[]))))")
"""The same for several sessions. A plain `ANY(%(sessions)s)` would have Postgres plan each such statement anew, for a millisecond,
because its estimate would depend on the number of sessions."""

_AMONG = "WHERE (session_id, id) IN (SELECT * FROM unnest(%(sessions)s::text[], %(threads)s::text[]))"
