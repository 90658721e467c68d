"""Events: past facts, numbered within their session under its lock, so that they are committed in the order of their numbers."""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database.rows import Db
from models.database.tables import Base
from models.pure.times import rfc3339
from models.session.event.fields import ShownFields
from models.session.thread.row import Thread

SHOWN: Final = "shown_input"
"""Field of the stored event of a client's call: the input for readers who do not run the call. No response has this field."""
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
    type: Mapped[str]
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """All fields of the wire's event but `id`, `type` and `processed_at`."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    processed_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Null while a user's message is queued."""
    turn_id: Mapped[str | None]
    """The turn that read a user's message. The messages of a turn are its prompt."""

    # Only columns that never change, so that the update of a message writes no index anew.
    __table_args__ = (sa.Index("event_message", "session_id", "seq", postgresql_where=sa.text("type = 'user.message'")),)

    @property
    def row(self) -> dict[str, Any]:
        """The event's columns, for an insert."""
        return {key: getattr(self, key) for key in _COLUMNS}

    def shown(self, *, whole: bool) -> dict[str, Any]:
        """Return the event for a list or a stream: its body, which is stored in the API's form, with its id, type and time.

        `whole`: the client may run client tools, so their inputs contain their secrets.
        """
        body = dict(self.body)
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


_COLUMNS = tuple(Event.__table__.columns.keys())
_PROCESS = """
    UPDATE event SET processed_at = %(now)s, turn_id = %(turn)s::text
    WHERE session_id = %(session)s AND seq = ANY (ARRAY(
        SELECT seq FROM event WHERE session_id = %(session)s AND thread_id = %(thread)s AND type = 'user.message'
        AND processed_at IS NULL ORDER BY seq DESC LIMIT %(unread)s
    ))
"""
