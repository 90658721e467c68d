"""A session counts the threads of its sub-agents, because its lock reads only the open ones."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(11, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

BEGUN = """
    UPDATE session SET threads_begun = children.number
    FROM (SELECT session_id, count(*) AS number FROM thread WHERE parent_id IS NOT NULL GROUP BY session_id) children
    WHERE session.id = children.session_id
"""


def upgrade() -> None:
    # A constant default rewrites no row.
    op.add_column("session", sa.Column("threads_begun", sa.Integer, nullable=False, server_default="0"))
    op.execute(BEGUN)
