"""Events: past facts, numbered within their session under its lock, so that they are committed in the order of their numbers."""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.pure.times import rfc3339
from models.session.event.fields import ShownFields
from models.session.thread.row import Thread, own_id

SHOWN: Final = "shown_input"
"""Field of the stored event of a client's call: the input for readers who do not run the call. No response has this field."""
MESSAGES: Final = ("user.message", "agent.thread_message_received")
"""The types of the events that a turn reads: messages of users, and of other threads."""
MESSAGE = f"type IN {MESSAGES}"
"""The condition on such events."""
UNREAD = "(processed_at IS NULL OR (turn_id IS NULL AND type <> 'user.message'))"
"""The condition on such events that no turn has read."""
OF_ASSENT = ("approval.", "grant.", "model.")
"""The prefixes of Assent's own types, which clients see only with `include=approvals`."""


class Event(Base):
    """One fact of a session. Never changed, except that `processed_at` and `turn_id` of a user's message are set once."""

    __tablename__ = "event"

    session_id: Mapped[str] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    id: Mapped[str]
    workspace_id: Mapped[str]
    thread_id: Mapped[str]
    """The thread to which the fact belongs. Facts of the whole session belong to its own thread."""
    cross_posted: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True if a fact of another thread is also in the stream of the session's own thread, which is the session's stream."""
    type: Mapped[str]
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """All fields of the wire's event but `id`, `type` and `processed_at`."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    processed_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Null while a user's message is queued."""
    turn_id: Mapped[str | None]
    """The turn that read a message. The messages of a turn are its prompt."""

    # Only columns that never change, so that the update of a message writes no index anew.
    __table_args__ = (sa.Index("event_message", "session_id", "seq", postgresql_where=sa.text(MESSAGE)),)

    @property
    def row(self) -> dict[str, Any]:
        """The event's columns, for an insert."""
        return dict(vars(self))

    def is_in(self, thread_id: str) -> bool:
        """True if the event is in the stream of this thread. `in_stream_of` is the same in SQL."""
        return self.thread_id == thread_id or (self.cross_posted and thread_id == own_id(self.session_id))

    def shown(self, *, whole: bool, thread_id: str | None = None) -> dict[str, Any]:
        """Return the event for a list or a stream: its body, which is stored in the API's form, with its id, type and time.

        `whole`: the client may run client tools, so their inputs contain their secrets. `thread_id`: the thread whose stream it is;
        None: the session's own. A cross-posted event names its thread, as the SDK expects; in its own stream a call does not.
        """
        body = dict(self.body)
        if self.cross_posted and (thread_id != self.thread_id or self.type.startswith("user.")):
            body["session_thread_id"] = self.thread_id
        masked = body.pop(SHOWN, None)
        if masked is not None and not whole:
            body["input"] = masked
        processed_at = rfc3339(self.processed_at) if self.processed_at else None
        return {**body, "type": self.type, **ShownFields(id=self.id, processed_at=processed_at)}

    @staticmethod
    def process_queue(db: Db, thread: Thread, now: datetime, turn_id: str | None) -> None:
        """Mark the last queued messages of a thread, `thread.unread` of them, as read by this turn; None: no turn reads them."""
        values = {"session": thread.session_id, "thread": thread.id, "unread": thread.unread}
        db.write(_PROCESS, **values, now=now, turn=turn_id)

    @staticmethod
    def awaits_reply(db: Db, thread: Thread) -> bool:
        """True if a user's message is among the queued messages of a thread."""
        return thread.unread > 0 and bool(db.value(_OF_USER, session=thread.session_id, thread=thread.id))


def in_stream_of(thread_id: str, session_id: str) -> str:
    """Return the condition that `Event.is_in` is true of this thread, whose id is the value `thread`."""
    of_thread = "event.thread_id = %(thread)s"
    return f"({of_thread} OR event.cross_posted)" if thread_id == own_id(session_id) else of_thread


def crosses(kind: str, body: dict[str, Any], *, self_hosted: bool) -> bool:
    """True if an event of another thread is also in the session's stream, whose readers can so decide and run every call.

    These are calls that people are asked about or that the client runs, what clients send, and all about approvals and statuses.
    """
    if kind.startswith(_CROSSING):
        return True
    permission = body.get("evaluated_permission")
    return permission == "ask" or (kind == "agent.tool_use" and self_hosted and permission == "allow")


_CROSSING = ("session.thread_", "user.interrupt", "user.tool_", "user.custom_", "agent.custom_tool_use", "approval.", "grant.")
_PROCESS = f"""
    UPDATE event SET processed_at = coalesce(processed_at, %(now)s), turn_id = %(turn)s::text
    WHERE session_id = (SELECT %(session)s) AND seq = ANY (ARRAY(
        SELECT seq FROM event WHERE session_id = (SELECT %(session)s) AND thread_id = %(thread)s AND {MESSAGE}
        AND {UNREAD} ORDER BY seq DESC LIMIT %(unread)s
    ))
"""  # noqa: S608 - a condition of our own
"""With the session in a subquery, Postgres plans the statement once: its estimate no longer depends on the session."""
_OF_USER = """
    SELECT EXISTS (SELECT FROM event WHERE session_id = %(session)s AND thread_id = %(thread)s AND type = 'user.message'
        AND processed_at IS NULL)
"""
"""An index of its own would cost each message more than this rare query."""
