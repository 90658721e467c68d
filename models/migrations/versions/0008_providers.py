"""Providers: which one answered a turn, a workspace's defaults for models, and its own keys."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.rights import give_app

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

STRING = sa.String()


def upgrade() -> None:
    op.add_column("turn", sa.Column("provider", STRING))
    op.add_column("turn", sa.Column("model", STRING))
    op.add_column("workspace", sa.Column("model", postgresql.JSONB()))
    op.create_table(
        "provider_key",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("provider", STRING, nullable=False),
        sa.Column("ciphertext", STRING, nullable=False),
        sa.Column("hint", STRING, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", STRING, nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("workspace_id", "provider"),
    )
    give_app("provider_key", "SELECT, INSERT, UPDATE, DELETE")
