"""Fewer bytes per cycle: the session's changing columns stand together, and nothing is stored that no statement reads.

Postgres logs an update from the first byte that changes to the last, so columns that change together should be neighbours. The
columns that nearly every transaction changes are in the middle, those that change rarely at both ends.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

STRING = sa.String()
INTEGER = sa.Integer()
BIG = sa.BigInteger()
TIME = sa.DateTime(timezone=True)
JSON = postgresql.JSONB()


def changing() -> tuple[sa.Column[object], ...]:
    """The columns of a session that its transactions change, in their new order."""
    return (
        sa.Column("usage", JSON, nullable=False),
        sa.Column("stop_reason", JSON),
        sa.Column("context_tokens", INTEGER, nullable=False, server_default="0"),
        sa.Column("context_at", TIME),
        sa.Column("active_seconds", sa.Float(), nullable=False, server_default="0"),
        sa.Column("stream_positions", JSON, nullable=False),
        sa.Column("active_since", TIME),
        sa.Column("status", STRING, nullable=False),
        sa.Column("last_seq", BIG, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("audit_seq", BIG, nullable=False),
        sa.Column("audit_head", STRING, nullable=False),
        sa.Column("unread", INTEGER, nullable=False),
        sa.Column("turn_number", INTEGER, nullable=False),
        sa.Column("turn_count", INTEGER, nullable=False),
        sa.Column("turn_id", STRING),
        sa.Column("storage_id", STRING),
    )


def upgrade() -> None:
    reorder_session()
    op.execute("GRANT SELECT (audit_seq) ON session TO assent_system")
    op.execute("GRANT SELECT (last_seq) ON session TO assent_definer")
    op.drop_column("turn", "usage")
    op.drop_index("event_queue", "event")
    op.drop_index("event_prompt", "event")
    op.create_index("event_message", "event", ["session_id", "seq"], postgresql_where=sa.text("type = 'user.message'"))
    # One index finds the attempts of a session and keeps them apart.
    op.drop_constraint("turn_usage_pkey", "turn_usage")
    op.drop_index("turn_usage_of_session", "turn_usage")
    op.create_primary_key("turn_usage_pkey", "turn_usage", ["session_id", "turn_id", "attempt", "request"])


def reorder_session() -> None:
    names = [column.name for column in changing()]
    for name in names:
        op.alter_column("session", name, new_column_name=f"{name}_before", nullable=True, server_default=None)
    for column in changing():
        op.add_column("session", sa.Column(column.name, column.type, server_default=column.server_default))
    op.execute(f"UPDATE session SET {', '.join(f'{name} = {name}_before' for name in names)}")
    for column in changing():
        op.alter_column("session", column.name, nullable=column.nullable)
        op.drop_column("session", f"{column.name}_before")
