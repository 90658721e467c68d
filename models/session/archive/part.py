"""Parts: each is a range of one session's events, with the replies, inputs and results of that time, in one content."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base, Hex
from models.database.transactions import Hint, outbox

WRITING = timedelta(hours=1)
"""Time after which nobody stores the content of a part any more."""


class ArchivePart(Base):
    """One part. Its id is its fence: each attempt to archive a range has a new one. The states are in `models.pure.states`."""

    __tablename__ = "archive_part"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    status: Mapped[str] = mapped_column(default="writing")
    first_seq: Mapped[int] = mapped_column(sa.BigInteger)
    last_seq: Mapped[int] = mapped_column(sa.BigInteger)
    """The range of `Event.seq`. The kept parts of a session hold all events up to `Session.archived_through`, each once."""
    after: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    until: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """The time of the last event before the range, and of the last in it: replies and calls that ended between are in the part."""
    rows: Mapped[int]
    """Number of rows in the part."""
    size: Mapped[int] = mapped_column(default=0)
    """Bytes of the content, as it is stored."""
    sha256: Mapped[str | None] = mapped_column(Hex)
    """Hash of the content, as it is stored. None while it is being written."""
    stored_in: Mapped[str]
    """`rows`: in the table `archive_content`. `files`: at `ASSENT_ARCHIVE_URL`, under `key`."""
    fault: Mapped[str | None]
    """What is wrong with the content: it was missing or altered when somebody last read it."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    due_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When a sweep removes the part; None if it is kept."""
    checked_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When its content was last checked. None: when it was stored."""

    __table_args__ = (
        sa.Index("archive_part_of_session", "session_id", "last_seq"),
        sa.Index("archive_part_until", "workspace_id", "until", postgresql_where=sa.text("status = 'kept'")),
        sa.Index("archive_part_due", "due_at", postgresql_where=sa.text("status <> 'kept'")),
        sa.Index("archive_part_checked", sa.text("coalesce(checked_at, created_at)"), postgresql_where=sa.text("status = 'kept'")),
        sa.Index("archive_part_faulty", "workspace_id", postgresql_where=sa.text("fault IS NOT NULL")),
    )

    @property
    def key(self) -> str:
        """The path of the part's file, below the URL."""
        return f"{self.workspace_id}/{self.session_id}/{self.id}"

    @property
    def words(self) -> str:
        """The part in words, as the subject of a sentence."""
        return f"part {self.id} of the archive, with the events {self.first_seq} to {self.last_seq} of session {self.session_id},"

    @classmethod
    def after_event(cls, db: Db, session_id: str, seq: int) -> "Sequence[ArchivePart]":
        """Return the kept parts of a session that hold events after `seq`, in order."""
        return db.find(cls, f"{_KEPT} AND last_seq > %(seq)s ORDER BY last_seq", session=session_id, seq=seq)

    @classmethod
    def between(cls, db: Db, session_id: str, start: datetime | None, end: datetime | None) -> "Sequence[ArchivePart]":
        """Return the kept parts of a session that hold what ended between these times, in order; None: without this bound."""
        these = f"{_KEPT} AND until >= coalesce(%(start)s, until) AND coalesce(after < %(end)s, true) ORDER BY last_seq"
        return db.find(cls, these, session=session_id, start=start, end=end)

    @classmethod
    def at(cls, db: Db, session_id: str, time: datetime) -> "Sequence[ArchivePart]":
        """Return the kept parts of a session that hold what ended at this time: several, if a part ends between its events."""
        these = f"{_KEPT} AND (after IS NULL OR after <= %(time)s) AND until >= %(time)s ORDER BY last_seq"
        return db.find(cls, these, session=session_id, time=time)


class ArchiveContent(Base):
    """The content of one part, if it is in the database."""

    __tablename__ = "archive_content"

    part_id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    content: Mapped[bytes] = mapped_column(sa.LargeBinary)


def erase_parts(db: Db, session_id: str) -> None:
    """Erase all parts of a session, also of a deleted one. Nobody reads them any more; a sweep removes their contents.

    Idempotent. Call it under the session's lock, or once the session is deleted.
    """
    db.write(_ERASE, session=session_id)
    db.write("UPDATE session SET archived_lines = NULL WHERE id = %(session)s", session=session_id)
    outbox(db).hints.append(Hint("sweep.remove_parts", ()))


_KEPT = "WHERE session_id = %(session)s AND status = 'kept'"
# One statement instead of `Db.move`, as a session may have thousands of parts: from every other status a part may become `gone`.
_ERASE = "UPDATE archive_part SET status = 'gone', due_at = assent_now() WHERE session_id = %(session)s AND status <> 'gone'"
