"""Removals: sessions and endpoints that are deleted, and whose rows a sweep removes in batches, however many there are.

The deletion itself deletes the session or endpoint and inserts its removal. From then on, a row-level policy hides the rows of the
removed session from every query (`give_app` in `models.migrations.rights`), and an endpoint's deliveries are found by nobody.
"""

from datetime import datetime
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.database import clock
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox

Kind = Literal["session", "endpoint"]


class Removal(Base):
    """One deleted session or endpoint, until all of its rows are gone."""

    __tablename__ = "removal"

    subject_id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    kind: Mapped[str]
    """A `Kind`."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    emptied_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When no row was found any more. A transaction that began before the deletion may still insert one."""

    __table_args__ = (sa.Index("removal_due", "created_at"),)


def begin(db: Db, kind: Kind, subject_id: str) -> None:
    """Have a sweep remove the rows of a session or endpoint that this transaction deletes."""
    db.insert(Removal(subject_id=subject_id, workspace_id=db.workspace_id, kind=kind, created_at=clock.now(db)))
    outbox(db).hints.append(Hint("sweep.remove_deleted", ()))


def sees(db: Db, subject_id: str) -> None:
    """Let this transaction see the rows of a removed session."""
    db.rows("SELECT set_config('assent.removing', %(id)s, true)", id=subject_id)
