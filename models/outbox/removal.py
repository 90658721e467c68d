"""Removals: sessions and endpoints that are deleted, and people who are erased. A sweep removes their rows in batches, however many
there are.

The deletion itself deletes the session or endpoint and inserts its removal. From then on, a row-level policy hides the rows of the
removed session from every query (`give_app` in `models.migrations.rights`), and an endpoint's deliveries are found by nobody.
"""

from datetime import datetime
from typing import Literal

import sqlalchemy as sa

from models.audit.principal import Principal
from models.database import clock
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox

Kind = Literal["session", "endpoint", "erased_session", "erased_person"]
"""`erased_session`: also the texts of the session's audit. `erased_person`: the rows and texts that identify the person."""


class Removal(Base):
    """One deleted session or endpoint, or one erased person, until all of the rows are gone."""

    __tablename__ = "removal"

    subject_id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    kind: Mapped[str]
    """A `Kind`."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    emptied_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When no row was found any more. A transaction that began before the deletion may still insert one."""
    erased_by: Mapped[str | None]
    """`kind:id` of the principal that had the session or person erased, for the acts of the sweep."""

    __table_args__ = (sa.Index("removal_due", "created_at"),)


def begin(db: Db, kind: Kind, subject_id: str, erased_by: Principal | None = None) -> None:
    """Have a sweep remove the rows of a session or endpoint that this transaction deletes, or of what `erased_by` has erased."""
    by = str(erased_by) if erased_by else None
    db.insert(Removal(subject_id=subject_id, workspace_id=db.workspace_id, kind=kind, created_at=clock.now(db), erased_by=by))
    outbox(db).hints.append(Hint("sweep.remove_deleted", ()))


def sees(db: Db, subject_id: str) -> None:
    """Let this transaction see the rows of a removed session."""
    db.rows("SELECT set_config('assent.removing', %(id)s, true)", id=subject_id)
