"""Reasons for a denial, keys that decide, and indexes of what was decided last and of what is no call to run."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(16, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    # Neither a column that is null nor a constant default rewrites a row.
    op.add_column("workspace", sa.Column("denial_reasons", JSONB))
    op.add_column("person", sa.Column("decides_by_keys", sa.Boolean, nullable=False, server_default=sa.true()))
    op.execute("GRANT UPDATE (decides_by_keys) ON person TO assent_app")
    op.create_index(
        "approval_decided", "approval", ["workspace_id", "decided_at"], postgresql_where=sa.text("decided_at IS NOT NULL")
    )
    op.create_index(
        "approval_decided_by",
        "approval",
        ["workspace_id", "decided_by", "decided_at"],
        postgresql_where=sa.text("decided_at IS NOT NULL"),
    )
    op.create_index(
        "approval_beyond_runs",
        "approval",
        ["workspace_id", "kind", "expires_at"],
        postgresql_where=sa.text("status = 'pending' AND NOT kind = 'tool_call'"),
    )
