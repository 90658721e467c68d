"""Fewer bytes per waiting session: hashes are stored as bytes, and indexes hold only the columns that find rows."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

HEX = {
    "approval": ("input_sha256", "decided_sha256"),
    "attempt": ("input_sha256",),
    "audit": ("hash",),
    "audit_text": ("salt",),
    "session": ("audit_head",),
    "tool_call": ("input_sha256",),
    "workspace": ("audit_head",),
}
"""The columns that held hexadecimal digits, by table."""
PENDING = sa.text("status = 'pending'")


def upgrade() -> None:
    for table, columns in HEX.items():
        types = ", ".join(f"ALTER COLUMN {name} TYPE bytea USING decode({name}, 'hex')" for name in columns)
        op.execute(f"ALTER TABLE {table} {types}")
    shrink_indexes()


def shrink_indexes() -> None:
    op.drop_index("approval_of_session", "approval")
    op.drop_index("approval_inbox", "approval")
    op.create_index("approval_inbox", "approval", ["workspace_id", "created_at"])
    op.drop_index("approval_queue", "approval")
    op.create_index("approval_queue", "approval", ["workspace_id", "expires_at"], postgresql_where=PENDING)
    op.drop_index("session_newest", "session")
    op.create_index("session_newest", "session", ["workspace_id", "created_at"])
    # Workspaces and agents are never deleted.
    op.drop_constraint("session_workspace_id_fkey", "session")
    op.drop_constraint("session_agent_id_fkey", "session")
    # A call belongs to a turn, and with the turn to a session; an approval belongs to a call.
    op.drop_constraint("tool_call_session_id_fkey", "tool_call")
    op.drop_constraint("approval_session_id_fkey", "approval")
    op.drop_index("tool_call_of_session", "tool_call")
    op.create_index("tool_call_of_turn", "tool_call", ["turn_id"])
    op.execute("GRANT SELECT (turn_id) ON tool_call TO assent_system")
    # Turns have ids of their own, and no statement reads the attempts of a whole session.
    op.drop_constraint("turn_usage_pkey", "turn_usage")
    op.create_primary_key("turn_usage_pkey", "turn_usage", ["turn_id", "attempt", "request"])
