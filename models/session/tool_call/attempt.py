"""Attempts: the evidence that a tool call may have taken effect."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base, Hex
from models.database.transactions import transaction
from models.pure.json.storable import storable
from models.pure.times import rfc3339
from models.session.tool_call.columns import ToolCallColumns


class Attempt(Base):
    """One try at a tool call, committed before its effect, so that a crash leaves evidence that it may have happened."""

    __tablename__ = "attempt"

    tool_call_id: Mapped[str] = mapped_column(sa.ForeignKey("tool_call.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    worker: Mapped[str]
    input_sha256: Mapped[str] = mapped_column(Hex)
    started_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    ended_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    outcome: Mapped[str | None]
    """The call's status after the attempt. Null while it runs, and if no end was ever reported."""
    output: Mapped[str | None] = mapped_column(sa.Text)
    """The output that the worker last stored. Helps people to find out how the attempt ended."""
    late_result: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """`{"content": [...], "is_error": bool, "at": time}`: a result that came after the worker lost its lease. Never used."""

    @classmethod
    def begin(cls, db: Db, call: ToolCallColumns, worker: str, at: datetime) -> None:
        """Insert the row of the call's present attempt. The caller commits it before the effect."""
        row = cls(
            tool_call_id=call.id,
            number=call.attempt,
            workspace_id=call.workspace_id,
            session_id=call.session_id,
            worker=worker,
            input_sha256=call.input_sha256,
            started_at=at,
        )
        db.insert(row)

    @staticmethod
    def end(db: Db, call: ToolCallColumns, at: datetime, outcome: str) -> None:
        """Record the end of the call's present attempt."""
        db.write(_END, call=call.id, number=call.attempt, at=at, outcome=outcome)

    @classmethod
    def summary(cls, db: Db, call: ToolCallColumns) -> dict[str, Any]:
        """Return the call's present attempt for the people who must decide how it ended."""
        row = db.get_one(cls, call.id, call.attempt)
        return {
            "number": row.number,
            "worker": row.worker,
            "started_at": rfc3339(row.started_at),
            "output": row.output or "",
        }

    @staticmethod
    def may_have_begun(db: Db, call: ToolCallColumns) -> bool:
        """True if an attempt at a call has begun, or may have."""
        return bool(db.rows(_MAY_HAVE_BEGUN, call=call.id))

    @staticmethod
    def losses(db: Db, call: ToolCallColumns) -> int:
        """Return how many earlier attempts ended with their worker."""
        return int(db.value("SELECT count(*) FROM attempt WHERE tool_call_id = %(call)s AND outcome = 'lost'", call=call.id))

    @staticmethod
    def say(call: ToolCallColumns, output: str) -> None:
        """Store the output that the attempt of the worker's call has printed so far."""
        with transaction(call.workspace_id) as db:
            db.write(_SAY, call=call.id, number=call.attempt, output=storable(output))

    @staticmethod
    def was_reported(db: Db, call: ToolCallColumns) -> bool:
        """True if the worker already reported the end, or if the row was deleted with its session."""
        row = db.get(Attempt, call.id, call.attempt)
        return row is None or row.outcome in {"done", "asked"}

    @staticmethod
    def late(db: Db, call: ToolCallColumns, result: dict[str, Any]) -> None:
        """Store a result that came too late, beside the outcome that was decided without it."""
        db.write(_LATE, call=call.id, number=call.attempt, result=Jsonb(result))


_END = "UPDATE attempt SET ended_at = %(at)s, outcome = %(outcome)s WHERE tool_call_id = %(call)s AND number = %(number)s"
_SAY = "UPDATE attempt SET output = %(output)s WHERE tool_call_id = %(call)s AND number = %(number)s AND ended_at IS NULL"
_LATE = "UPDATE attempt SET late_result = %(result)s WHERE tool_call_id = %(call)s AND number = %(number)s"
_MAY_HAVE_BEGUN = "SELECT FROM attempt WHERE tool_call_id = %(call)s AND outcome IS DISTINCT FROM 'not_begun' LIMIT 1"
