"""Legal holds, and how long a workspace keeps what is old."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from models.migrations.rights import give_app, give_system

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(14, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    # A column that is null rewrites no row.
    op.add_column("workspace", sa.Column("retention", JSONB))
    op.create_table(
        "legal_hold",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("workspace_id", sa.String, nullable=False),
        sa.Column("session_id", sa.String),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String, nullable=False),
        sa.Column("released_at", sa.DateTime(timezone=True)),
        sa.Column("released_by", sa.String),
    )
    op.create_index(
        "legal_hold_open", "legal_hold", ["workspace_id", "session_id"], postgresql_where=sa.text("released_at IS NULL")
    )
    op.create_index("legal_hold_newest", "legal_hold", ["workspace_id", "created_at"])
    give_app("legal_hold", "SELECT, INSERT, UPDATE (released_at, released_by)")
    give_system("legal_hold", "SELECT (id, workspace_id, session_id, released_at)")
