"""Results that are too long for a model: stored whole, so that a tool can read them in parts."""

from datetime import datetime

import sqlalchemy as sa

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transact
from models.session.archive.reading import row_of
from models.session.locked import Locked
from models.session.tool_call.row import ToolCall


class StoredResult(Base):
    """The whole text of one call's result. `CallResult` has the part that the model gets."""

    __tablename__ = "stored_result"

    tool_call_id: Mapped[str] = mapped_column(sa.ForeignKey("tool_call.id"), primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str] = mapped_column(index=True)
    content: Mapped[bytes] = mapped_column(sa.LargeBinary)
    """UTF-8."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def keep(cls, locked: Locked, call: ToolCall, content: bytes) -> None:
        """Store the whole result, in the transaction that settles the call. From then on the agent can read it."""
        locked.session.long_results = True
        locked.db.insert(
            cls(
                tool_call_id=call.id,
                workspace_id=call.workspace_id,
                session_id=call.session_id,
                content=content,
                created_at=locked.now,
            ),
        )

    @staticmethod
    def exists(db: Db, call_id: str) -> bool:
        """True if the call's result was too long for the model. Only the call's own session can read such a result whole."""
        return bool(db.rows("SELECT FROM stored_result WHERE tool_call_id = %(call)s", call=call_id))

    @staticmethod
    def read(workspace_id: str, session_id: str, call_id: str) -> bytes | None:
        """Return the whole result of a call of this session, or None if none is stored. Raises Unreadable."""

        def content(db: Db) -> bytes | None:
            call = db.get(ToolCall, call_id)
            if call is None or call.session_id != session_id:
                return None
            row = row_of(db, StoredResult, call_id, session_id, call.settled_at)
            return row.content if row else None

        return transact(workspace_id, content)
