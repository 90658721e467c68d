"""Folds: what a request to the model holds in place of a long session's old turns. The turns themselves stay as they are."""

from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database.tables import Base

RESULTS: Literal["results"] = "results"
TURNS: Literal["turns"] = "turns"


class Fold(Base):
    """One step by which later requests became shorter. Inserted once, and deleted with the session."""

    __tablename__ = "fold"

    session_id: Mapped[str] = mapped_column(sa.ForeignKey("session.id"), primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    """`results`: the long results of these turns are cut. `turns`: the summary replaces these turns."""
    through: Mapped[int] = mapped_column(primary_key=True)
    """The number of the last turn that the fold covers. It covers all turns before it as well."""
    seq: Mapped[int] = mapped_column(sa.BigInteger)
    """The last message that these turns read, by its number among the session's events."""
    workspace_id: Mapped[str]
    turn_id: Mapped[str]
    """The turn whose request would have been too long."""
    summary: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """A neutral block `summary` with its `text`. `provider_data` holds the block of the provider that wrote it, verbatim."""
    provider: Mapped[str | None]
    """The provider that wrote the summary, and to which alone its own block is sent."""
    model: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
