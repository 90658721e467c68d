"""A grant says whose calls it covers: those of an agent at a version, of one thread, or of all threads of its session."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = ("0007", "0006", "0005", "0004", "0003", "0002", "0001")
"""Revisions of earlier releases that work with the schema after this migration."""

# Until now a session had one thread, and a grant of a session covered all calls of it.
_OF_SESSIONS = """
    UPDATE approval_grant g SET agent_version = s.agent_version, thread_id = 'sthr_' || substr(s.id, strpos(s.id, '_') + 1),
        reach = 'calls of the agent in this session'
    FROM session s WHERE s.id = g.session_id
"""
_OF_AGENTS = "UPDATE approval_grant SET reach = 'calls of the agent in every session' WHERE session_id IS NULL"


def upgrade() -> None:
    op.add_column("approval_grant", sa.Column("agent_version", sa.Integer))
    op.add_column("approval_grant", sa.Column("thread_id", sa.String))
    op.add_column("approval_grant", sa.Column("reach_kind", sa.String, nullable=False, server_default="agent"))
    op.add_column("approval_grant", sa.Column("reach", sa.String, nullable=False, server_default=""))
    op.execute(_OF_SESSIONS)
    op.execute(_OF_AGENTS)
