"""Results of tool calls: the content blocks that the model gets."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db, RowGone
from models.database.tables import Base
from models.session.archive.reading import row_of
from models.session.tool_call.columns import ToolCallColumns


@dataclass(frozen=True)
class Result:
    """The result with which a call ends."""

    content: list[dict[str, Any]]
    """Content blocks, as the model gets them."""
    is_error: bool = False
    structured: dict[str, Any] | None = None
    """The result as data, for clients."""
    cached_from: str | None = None
    """The earlier call whose result this is."""
    from_client: bool = False
    """True if the client posted the result, with its event."""
    is_ours: bool = False
    """True for a text of our own that can repeat no secret, so that the call's input is not read to mask its secrets."""

    @classmethod
    def error(cls, words: str, *, is_ours: bool = False) -> "Result":
        """Return an error that is one text."""
        return cls(text(words), is_error=True, is_ours=is_ours)


class CallResult(Base):
    """The result of one settled call, in a row of its own: only the next turn and `reveal` read it.

    Inserted by the transaction that settles the call, never changed, and deleted with the call.
    """

    __tablename__ = "call_result"

    tool_call_id: Mapped[str] = mapped_column(
        sa.ForeignKey("tool_call.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"), primary_key=True
    )
    workspace_id: Mapped[str]
    content: Mapped[list[dict[str, Any]]] = mapped_column(JSONB(none_as_null=True))
    """Content blocks, as the model gets them."""
    structured: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The result as data, if the tool returned any; for clients, not for the model."""

    @classmethod
    def put(cls, db: Db, call: ToolCallColumns, result: Result) -> "CallResult":
        """Insert the result of a call, and return the row."""
        row = cls(tool_call_id=call.id, workspace_id=call.workspace_id, content=result.content, structured=result.structured)
        db.insert(row)
        return row

    @classmethod
    def of(cls, db: Db, call: ToolCallColumns) -> "CallResult":
        """Return the result of a settled call, also from the archive. Raises Unreadable."""
        row = row_of(db, cls, call.id, call.session_id, call.settled_at)
        if row is None:
            raise RowGone(f"no call_result of {call.id}")
        return row


def text(words: str) -> list[dict[str, Any]]:
    """Return the content of a result that is one text."""
    return [{"type": "text", "text": words}]
