"""Halts say that the installation was restored from a backup, and approvals that they may have been decided after it."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None
serves = ("0008", "0007", "0006", "0005", "0004", "0003", "0002", "0001")
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    # Columns that are null, or whose default is constant, rewrite no row.
    op.add_column("approval", sa.Column("backup_at", sa.DateTime(timezone=True)))
    op.add_column("halt", sa.Column("backup_at", sa.DateTime(timezone=True)))
    op.add_column("halt", sa.Column("doubts_calls", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("halt", sa.Column("restored_at", sa.DateTime(timezone=True)))
