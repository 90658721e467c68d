"""Approvals say which calls are alike, and evidence keeps its first look, so that people see what was decided and what changed."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(17, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.add_column("approval", sa.Column("likeness", sa.String))
    op.add_column("evidence", sa.Column("first_body", postgresql.JSONB))
    op.execute("CREATE INDEX approval_alike ON approval (agent_id, likeness, created_at) WHERE kind = 'tool_call'")
