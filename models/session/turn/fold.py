"""Folds: how requests to the model shorten the old turns of a long session. The turns' own rows do not change."""

from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import Mapped, mapped_column
from models.database.tables import Base

RESULTS: Literal["results"] = "results"
TURNS: Literal["turns"] = "turns"


class Fold(Base):
    """One step by which later requests became shorter. Inserted once, and deleted with the session."""

    __tablename__ = "fold"

    session_id: Mapped[str] = mapped_column(primary_key=True)
    thread_id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    """`results`: the long results of these turns are cut. `turns`: the summary replaces these turns."""
    through: Mapped[int] = mapped_column(primary_key=True)
    """The number of the last turn that the fold covers. The fold covers all earlier turns too."""
    seq: Mapped[int] = mapped_column(sa.BigInteger)
    """The `Event.seq` of the last message that these turns read."""
    workspace_id: Mapped[str]
    turn_id: Mapped[str]
    """The turn whose request would have been too long."""
    summary: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """A neutral block `summary` with its `text`. `provider_data` holds the provider's own block, verbatim."""
    provider: Mapped[str | None]
    """The provider that wrote the summary. Its own block is sent to that provider alone."""
    model: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
