"""A session's row no longer carries a copy of its agent: it names the version, and keeps what it overrides of it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("session", sa.Column("agent_version", sa.Integer(), nullable=True))
    op.add_column("session", sa.Column("overrides", postgresql.JSONB(astext_type=sa.Text()), nullable=True))
    op.execute("UPDATE session SET agent_version = (agent->>'version')::int, overrides = agent - '{id,type,version}'::text[]")
    op.execute("""
        UPDATE session SET overrides = NULL FROM agent_version AS version
        WHERE version.agent_id = session.agent_id AND version.version = session.agent_version
        AND session.overrides = version.body - 'metadata'
    """)
    op.alter_column("session", "agent_version", nullable=False)
    op.drop_column("session", "agent")
    # It changes eight times a run, and finds room on its page.
    op.execute("ALTER TABLE session SET (fillfactor = 60), RESET (toast_tuple_target)")
