"""Results of tool calls: the content blocks that the model gets."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database.rows import Db
from models.database.tables import Base
from models.session.tool_call.columns import ToolCallColumns


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
    def put(
        cls, db: Db, call: ToolCallColumns, content: list[dict[str, Any]], structured: dict[str, Any] | None = None
    ) -> "CallResult":
        """Insert the result of a call, and return it."""
        result = cls(tool_call_id=call.id, workspace_id=call.workspace_id, content=content, structured=structured)
        db.insert(result)
        return result

    @classmethod
    def of(cls, db: Db, call_id: str) -> "CallResult":
        """Return the result of a settled call."""
        return db.get_one(cls, call_id)


def text(words: str) -> list[dict[str, Any]]:
    """Return the content of a result that is one text."""
    return [{"type": "text", "text": words}]
