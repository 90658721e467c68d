"""Legal holds: while a session or a whole workspace is on hold, nothing of it is deleted, erased, cut or archived for good.

A hold is set and released under the lock on the workspace's row, which its act in the audit takes anyway. A verb that removes
something takes the same lock, and then asks `refuse` or `find`. So what is on hold when a verb commits stays.
"""

from datetime import datetime

import sqlalchemy as sa

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, Invalid, NotFound


class LegalHold(Base):
    """One hold. It holds until `released_at` is set. A session may have several, each for a reason of its own."""

    __tablename__ = "legal_hold"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str | None]
    """None: the whole workspace, with all of its sessions. No foreign key, since the audit of a deleted session can be on hold."""
    reason: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    created_by: Mapped[str]
    released_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    released_by: Mapped[str | None]

    __table_args__ = (
        sa.Index("legal_hold_open", "workspace_id", "session_id", postgresql_where=sa.text("released_at IS NULL")),
        sa.Index("legal_hold_newest", "workspace_id", "created_at"),
    )

    @classmethod
    def set_on(cls, db: Db, principal: Principal, session_id: str | None, reason: str) -> "LegalHold":
        """Put a session on hold, or without one the workspace. Raises Invalid for a session of which nothing is left."""
        new_id = ids.new("hold")
        acts.record(db, principal, "legal_hold.set", session_id or principal.workspace_id, {"id": new_id, "reason": Text(reason)})
        if session_id and not db.rows(_EXISTS, session=session_id):
            raise Invalid("session_id", f"session {session_id!r} was not found in this workspace.")
        hold = cls(
            id=new_id,
            workspace_id=principal.workspace_id,
            session_id=session_id,
            reason=reason,
            created_at=clock.now(db),
            created_by=str(principal),
        )
        db.insert(hold)
        return hold

    @classmethod
    def of_id(cls, db: Db, hold_id: str) -> "LegalHold":
        """Return the hold with this id. Raises NotFound."""
        hold = db.get(cls, hold_id)
        if hold is None:
            raise NotFound("legal hold", hold_id)
        return hold

    def release(self, db: Db, principal: Principal) -> None:
        """End the hold. Idempotent. Other holds on the same session stay."""
        row = db.get_one(LegalHold, self.id, lock=True)
        if row.released_at is None:
            row.released_at, row.released_by = clock.now(db), str(principal)
            acts.record(db, principal, "legal_hold.released", row.session_id or row.workspace_id, {"id": row.id})

    @property
    def words(self) -> str:
        """The hold in the words of a refusal: what it is on, its id, who set it, since when, and why."""
        on = f"session {self.session_id}" if self.session_id else "the workspace"
        return f"{on} is on hold ({self.id}), set by {self.created_by} at {acts.time_text(self.created_at)}: {self.reason}"


def find(db: Db, session_id: str | None = None) -> LegalHold | None:
    """Return the oldest hold on the workspace or on this session, or None. Without a session, only a hold on the workspace."""
    return db.first(LegalHold, f"WHERE {_OPEN} AND {_ON} ORDER BY created_at LIMIT 1", session=session_id)


def refuse(db: Db, session_id: str | None = None) -> None:
    """Raise Conflict if the workspace or this session is on hold. Call it under the lock on the workspace's row."""
    hold = find(db, session_id)
    if hold:
        winner = {"type": "legal_hold", "id": hold.id, "session_id": hold.session_id, "reason": hold.reason}
        raise Conflict(f"Nothing is removed: {hold.words}. Release the hold first.", winner)


def held_sql(workspace_id: str, session_id: str) -> str:
    """Return SQL that is true if the session in column `session_id`, or its workspace, is on hold. As `find` says."""
    return f"""
        EXISTS (SELECT FROM legal_hold WHERE released_at IS NULL AND legal_hold.workspace_id = {workspace_id}
            AND (legal_hold.session_id IS NULL OR legal_hold.session_id = {session_id}))
    """


_OPEN = "workspace_id = current_setting('assent.workspace') AND released_at IS NULL"
_ON = "(session_id IS NULL OR session_id = %(session)s)"
_EXISTS = "SELECT FROM session WHERE id = %(session)s UNION ALL SELECT FROM audit WHERE chain = %(session)s LIMIT 1"
