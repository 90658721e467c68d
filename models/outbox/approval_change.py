"""Changes of approvals that notifications have to follow.

A worker turns a change into notifications, and deletes the change, in one transaction. So a change has no status and no lease.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.database import ids
from models.database.exchange import Rows, Statement
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox
from models.pure.json.codec import encode

Stage = Literal["requested", "reminded", "escalated", "decided"]
"""What happened to the approval last. `decided` includes approvals that expired or were withdrawn."""
STAGE_OF: dict[str, Stage] = {
    "approval.requested": "requested",
    "approval.reminded": "reminded",
    "approval.escalated": "escalated",
    "approval.decided": "decided",
    "approval.expired": "decided",
    "approval.cancelled": "decided",
}
"""The stage of the notification, by the type of the session's event."""


class ApprovalChange(Base):
    """One change, until its notifications exist."""

    __tablename__ = "approval_change"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    approval_id: Mapped[str]
    stage: Mapped[str]
    """One of `Stage`."""
    seq: Mapped[int] = mapped_column(sa.BigInteger)
    """The event's number in its session. A later change has a higher number."""
    due_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    hinted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("approval_change_due", "due_at"),)

    @classmethod
    def give_up(cls, db: Db, change_id: str, _why: str) -> None:
        """Delete a change that cannot be turned into notifications. Nobody is notified of it; the approval itself is unchanged."""
        db.write("DELETE FROM approval_change WHERE id = %(id)s", id=change_id)

    @staticmethod
    def cause(db: Db, session_id: str, events: Iterable[tuple[str, int, dict[str, Any]]]) -> None:
        """Queue the changes of these events (type, number in the session, body), if the workspace has an enabled channel."""
        rows = [
            {
                "id": ids.new("apch"),
                "session_id": session_id,
                "approval_id": body["approval_id"],
                "stage": STAGE_OF[kind],
                "seq": seq,
            }
            for kind, seq, body in events
            if kind in STAGE_OF
        ]
        if not rows:
            return

        def hint(inserted: Rows) -> None:
            outbox(db).hints += [Hint("deliver.fan_out", (change_id, db.workspace_id)) for (change_id,) in inserted]

        db.queue(Statement(_CAUSE, {"rows": encode(rows)}, hint))


_CAUSE = """
    INSERT INTO approval_change (id, workspace_id, session_id, approval_id, stage, seq, due_at, hinted_at)
    SELECT change.id, current_setting('assent.workspace'), change.session_id, change.approval_id, change.stage, change.seq, now, now
    FROM jsonb_to_recordset(CAST(%(rows)s AS jsonb))
        AS change (id text, session_id text, approval_id text, stage text, seq bigint),
    LATERAL (SELECT assent_now() AS now) AS clock
    WHERE EXISTS (SELECT FROM channel WHERE workspace_id = current_setting('assent.workspace') AND state = 'enabled')
    RETURNING id
"""
