"""Indexes of the acts that the page of the audit lists: all but routine ones, and of these all but frequent ones."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(32, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

ROUTINE = (
    "'audit.sealed', 'grant.used', 'work.offered', 'work.stopped', "
    "'tool_call.allowed', 'tool_call.cached', 'tool_call.finished', 'tool_call.lost', 'tool_call.not_begun', 'tool_call.started', "
    "'turn.failed', 'turn.fell_back', 'turn.folded', 'turn.lost', 'turn.started'"
)
FREQUENT = (
    "'approval.decided', 'approval.reminded', 'approval.requested', 'approval.voted', "
    "'message.received', 'message.sent_to_thread', 'session.created', 'thread.created', 'tool_call.denied'"
)


def upgrade() -> None:
    for name, actions in (("audit_told", ROUTINE), ("audit_rare", f"{ROUTINE}, {FREQUENT}")):
        where = sa.text(f"action NOT IN ({actions})")
        op.create_index(name, "audit", ["workspace_id", "at"], postgresql_where=where)
