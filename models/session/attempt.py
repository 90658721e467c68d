"""Attempts: the evidence that a tool call may have taken effect."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction
from models.pure.storable import storable


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
    output: Mapped[str | None] = mapped_column(sa.Text)
    """What it had printed when its worker last said so; for people who must find out how it ended."""
    late_result: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """`{"content": [...], "is_error": bool, "at": time}`: what its worker reported when the call was no longer its. Never used."""

    @classmethod
    def begin(cls, db: Db, **columns: object) -> None:
        """Its row, to be committed before the effect."""
        db.insert(cls(**columns))

    @staticmethod
    def end(db: Db, call_id: str, number: int, at: datetime, outcome: str) -> None:
        """How it ended."""
        db.write(_END, call=call_id, number=number, at=at, outcome=outcome)

    @classmethod
    def told(cls, db: Db, call_id: str, number: int) -> dict[str, Any]:
        """What is known of an attempt, for who must say what became of it."""
        row = db.get_one(cls, call_id, number)
        return {
            "number": row.number,
            "worker": row.worker,
            "started_at": row.started_at.isoformat(),
            "output": row.output or "",
        }

    @staticmethod
    def say(workspace_id: str, call_id: str, number: int, output: str) -> None:
        """What it has printed until now."""
        with transaction(workspace_id) as db:
            db.write(_SAY, call=call_id, number=number, output=storable(output))

    @staticmethod
    def was_reported(db: Db, call_id: str, number: int) -> bool:
        """Whether its end was told by who made it; also if it is gone with its session."""
        row = db.get(Attempt, call_id, number)
        return row is None or row.outcome in {"done", "asked"}

    @staticmethod
    def late(db: Db, call_id: str, number: int, result: dict[str, Any]) -> None:
        """Keep what came too late beside what was decided without it."""
        db.write(_LATE, call=call_id, number=number, result=Jsonb(result))


_END = "UPDATE attempt SET ended_at = %(at)s, outcome = %(outcome)s WHERE tool_call_id = %(call)s AND number = %(number)s"
_SAY = "UPDATE attempt SET output = %(output)s WHERE tool_call_id = %(call)s AND number = %(number)s AND ended_at IS NULL"
_LATE = "UPDATE attempt SET late_result = %(result)s WHERE tool_call_id = %(call)s AND number = %(number)s"
