"""Attempts: the evidence that a tool call may have taken effect."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.db import Base, Db
from models.writes import insert, write


class Attempt(Base):
    """One try at a tool call, committed before its effect, so that a crash leaves evidence that it may have happened."""

    __tablename__ = "attempt"

    tool_call_id: Mapped[str] = mapped_column(sa.ForeignKey("tool_call.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    worker: Mapped[str]
    input_sha256: Mapped[str]
    started_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    ended_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    outcome: Mapped[str | None]
    """The status that the call took at its end; null while it runs, and for ever if nobody ever learnt it."""

    @classmethod
    def begin(cls, db: Db, **columns: object) -> None:
        """Its row, to be committed before the effect."""
        insert(db, cls(**columns))

    @staticmethod
    def end(db: Db, call_id: str, number: int, at: datetime, outcome: str) -> None:
        """How it ended."""
        write(db, _END, {"call": call_id, "number": number, "at": at, "as": outcome})


_END = "UPDATE attempt SET ended_at = %(at)s, outcome = %(as)s WHERE tool_call_id = %(call)s AND number = %(number)s"
