"""What the model replied in a turn."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database.tables import Base


class Reply(Base):
    """The checkpoint of one turn, in a row of its own: only later turns read it. Inserted once, and deleted with the turn."""

    __tablename__ = "reply"

    turn_id: Mapped[str] = mapped_column(sa.ForeignKey("turn.id", ondelete="CASCADE"), primary_key=True)
    workspace_id: Mapped[str]
    content: Mapped[list[dict[str, Any]]] = mapped_column(JSONB(none_as_null=True))
    """Content blocks exactly as the model gave them."""
