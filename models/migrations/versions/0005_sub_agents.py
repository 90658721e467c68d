"""Agents can have sub-agents: threads with agents of their own, whose messages turns read."""

import sqlalchemy as sa
from alembic import op

from models.migrations.rights import give_app

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None
serves = ("0004", "0003", "0002", "0001")
"""Revisions of earlier releases that work with the schema after this migration."""

MESSAGES = """
    DROP INDEX event_message;
    CREATE INDEX event_message ON event (session_id, seq) WHERE type IN ('user.message', 'agent.thread_message_received')
"""
INLINE_AGENT = """
    CREATE TABLE inline_agent (
        session_id varchar NOT NULL,
        thread_id varchar NOT NULL,
        workspace_id varchar NOT NULL,
        body jsonb NOT NULL,
        created_at timestamptz NOT NULL,
        PRIMARY KEY (session_id, thread_id)
    )
"""


def upgrade() -> None:
    # Constant defaults rewrite no row.
    op.add_column("thread", sa.Column("inline", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("session", sa.Column("agent_messages", sa.Integer, nullable=False, server_default="0"))
    op.execute(MESSAGES)
    op.execute(INLINE_AGENT)
    give_app("inline_agent", "SELECT, INSERT, DELETE", of_session=True)
