"""Replies: the model's reply in a turn."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.session.thread.row import Thread


class Reply(Base):
    """The checkpoint of one turn, in a row of its own: only later turns read it. Inserted once, and deleted with the turn."""

    __tablename__ = "reply"

    turn_id: Mapped[str] = mapped_column(sa.ForeignKey("turn.id", ondelete="CASCADE"), primary_key=True)
    workspace_id: Mapped[str]
    content: Mapped[list[dict[str, Any]]] = mapped_column(JSONB(none_as_null=True))
    """Blocks in the wire's shape: `text`, `thinking`, `tool_use` and others. The id of a `tool_use` block is its call's.

    `provider_data` of a block holds a provider's own data under the provider's name, such as signatures or its id of the call.
    Only that provider gets it. `problem` of a `tool_use` block says why its input could not be read; the input is then empty.
    Replies of earlier releases hold Anthropic's blocks unchanged."""

    @staticmethod
    def had_a_problem(db: Db, thread: Thread, number: int) -> bool:
        """True if the thread's turn of this number replied with a call whose input could not be read."""
        return bool(db.value(_HAD_A_PROBLEM, session=thread.session_id, thread=thread.id, number=number))


_HAD_A_PROBLEM = """
    SELECT EXISTS (SELECT FROM turn JOIN reply ON turn_id = id
        WHERE session_id = %(session)s AND thread_id = %(thread)s AND number = %(number)s
        AND jsonb_path_exists(content, '$[*].problem'))
"""
