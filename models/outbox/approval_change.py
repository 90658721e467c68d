"""Changes of approvals that notifications have to follow.

A worker turns a change into notifications, and deletes the change, in one transaction. So a change has no status and no lease.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from models.database import ids
from models.database.columns import Mapped, mapped_column
from models.database.exchange import Rows, Statement
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox
from models.pure.json.codec import encode

Stage = Literal["requested", "reminded", "escalated", "decided", "settled"]
"""What happened to the approval last. `decided` includes approvals that expired or were withdrawn. `settled`: an allowed call has
a result."""
STAGE_OF: dict[str, Stage] = {
    "approval.requested": "requested",
    "approval.reminded": "reminded",
    "approval.escalated": "escalated",
    "approval.decided": "decided",
    "approval.expired": "decided",
    "approval.cancelled": "decided",
}
"""The stage of the notification, by the type of the session's event."""

_RESULTS = frozenset({"agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result", "user.tool_result"})
"""The events that have the result of a call."""
_CALL = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")
"""The field of such an event that names the call."""


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
        """Queue the changes of these events (type, number in the session, body), if the workspace has an enabled channel.

        The result of a call is a change for messages that tell it: `TOLD_OF_RESULT`.
        """
        events = list(events)
        results = [
            {"id": ids.new("apch"), "session_id": session_id, "call_id": call_id, "seq": seq}
            for kind, seq, body in events
            if kind in _RESULTS
            if (call_id := next((body[name] for name in _CALL if name in body), None))
        ]
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

        def hint(inserted: Rows) -> None:
            outbox(db).hints += [Hint("deliver.fan_out", (change_id, db.workspace_id)) for (change_id,) in inserted]

        for sql, values in ((_CAUSE, rows), (_CAUSE_BY_RESULT, results)):
            if values:
                db.queue(Statement(sql, {"rows": encode(values)}, hint))


TOLD_OF_RESULT = """
    receipt IS NOT NULL AND channel.state = 'enabled' AND (
        channel.kind = 'slack' OR channel.tells_outcomes OR (
            channel.kind = 'mail' AND approval.decided_by = 'user:' || channel.person_id AND EXISTS (
                SELECT FROM link WHERE link.approval_id = approval.id AND link.person_id = channel.person_id AND used_at IS NOT NULL
            )
        )
    )
"""
"""True of a notification that tells the result of an allowed call: a message that is edited in place, one to a channel that asks
for results, and a mail to the person who decided by its link. Nobody else gets another message. A condition on the rows
`notification`, `channel` and `approval`."""
_CAUSE = """
    INSERT INTO approval_change (id, workspace_id, session_id, approval_id, stage, seq, due_at, hinted_at)
    SELECT change.id, current_setting('assent.workspace'), change.session_id, change.approval_id, change.stage, change.seq, now, now
    FROM jsonb_to_recordset(CAST(%(rows)s AS jsonb))
        AS change (id text, session_id text, approval_id text, stage text, seq bigint),
    LATERAL (SELECT assent_now() AS now) AS clock
    WHERE EXISTS (SELECT FROM channel WHERE workspace_id = current_setting('assent.workspace') AND state = 'enabled')
    RETURNING id
"""
_CAUSE_BY_RESULT = f"""
    INSERT INTO approval_change (id, workspace_id, session_id, approval_id, stage, seq, due_at, hinted_at)
    SELECT result.id, current_setting('assent.workspace'), result.session_id, approval.id, 'settled', result.seq, now, now
    FROM jsonb_to_recordset(CAST(%(rows)s AS jsonb)) AS result (id text, session_id text, call_id text, seq bigint)
    CROSS JOIN LATERAL (
        SELECT id, decided_by FROM approval WHERE tool_call_id = result.call_id AND status = 'allowed'
        ORDER BY created_at DESC LIMIT 1
    ) approval
    CROSS JOIN LATERAL (SELECT assent_now() AS now) clock
    WHERE EXISTS (
        SELECT FROM notification JOIN channel ON channel.id = channel_id
        WHERE notification.approval_id = approval.id AND {TOLD_OF_RESULT}
    )
    RETURNING id
"""  # noqa: S608 - a condition of our own
