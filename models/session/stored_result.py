"""Results that are too long for a model: kept whole, to be read in parts by a tool call."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction
from models.session.session import Session
from models.session.tool_call import ToolCall


class StoredResult(Base):
    """The whole text of one call's result; the call itself has what the model was shown."""

    __tablename__ = "stored_result"

    tool_call_id: Mapped[str] = mapped_column(sa.ForeignKey("tool_call.id"), primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str] = mapped_column(sa.ForeignKey("session.id"), index=True)
    content: Mapped[bytes] = mapped_column(sa.LargeBinary)
    """UTF-8."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def keep(cls, db: Db, session: Session, call: ToolCall, content: bytes) -> None:
        """Beside the call's result, in its transaction; from now on the agent can read it."""
        session.long_results = True
        db.insert(
            cls(
                tool_call_id=call.id,
                workspace_id=call.workspace_id,
                session_id=call.session_id,
                content=content,
                created_at=session.now,
            ),
        )

    @staticmethod
    def of(db: Db, call_id: str) -> bool:
        """Whether the call's result was too long, so that only its own session can read it."""
        return bool(db.rows("SELECT FROM stored_result WHERE tool_call_id = %(call)s", call=call_id))

    @staticmethod
    def read(workspace_id: str, session_id: str, call_id: str) -> bytes | None:
        """The whole result of a call of this session, if it was kept."""
        with transaction(workspace_id) as db:
            content: bytes | None = db.value(_CONTENT, call=call_id, session=session_id)
            return content


_CONTENT = "SELECT content FROM stored_result WHERE tool_call_id = %(call)s AND session_id = %(session)s"
