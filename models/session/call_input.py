"""What goes into a tool call: its input, how people are asked about it, and what they answered."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database.query import Query, select
from models.database.rows import Db
from models.database.tables import Base


class CallInput(Base):
    """The payload of one call, in a row of its own: `flow.lock` reads all calls of a turn, and few of their inputs are used.

    Written with the call, and deleted with it.
    """

    __tablename__ = "call_input"

    tool_call_id: Mapped[str] = mapped_column(
        sa.ForeignKey("tool_call.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"), primary_key=True
    )
    workspace_id: Mapped[str]
    input: Mapped[dict[str, Any]] = mapped_column(JSONB(none_as_null=True))
    """The input that runs. The call has its hash."""
    proposed_input: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The input that the model proposed, where a person changed `input`."""
    shown_input: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The proposed input with its secrets masked; None if it has none."""
    secrets: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    """Texts that are masked in the inputs and long enough to be searched for. They are masked in the call's result too."""
    asking: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """How people would be asked about a call that was allowed at once and may have to be asked about later: `Asking`."""
    question: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """What the tool asks before it can go on: `{"requests": {key: {...}}, "state": str | None}`."""
    answers: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """A person's answers to the question, by key."""

    @classmethod
    def of(cls, db: Db, call_id: str) -> "CallInput":
        """The payload of this call."""
        return db.get_one(cls, call_id)

    @classmethod
    def about(cls, call_id: str) -> "Query[CallInput]":
        """Reads the same together with other rows."""
        return select(cls, "WHERE tool_call_id = %(call)s", call=call_id)
