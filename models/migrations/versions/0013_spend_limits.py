"""Spend limits of workspaces, agents and people, and how far a person let a session pass them."""

import sqlalchemy as sa
from alembic import op

from models.migrations.rights import give_app

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

STRING = sa.String()
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("session", sa.Column("spend_limits_from", sa.Numeric()))
    op.create_table(
        "spend_limit",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("scope_type", STRING, nullable=False),
        sa.Column("scope_id", STRING, nullable=False),
        sa.Column("period", STRING, nullable=False),
        sa.Column("amount", sa.Numeric()),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("created_by", STRING, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("workspace_id", "scope_type", "scope_id", "period"),
    )
    give_app("spend_limit", "SELECT, INSERT, UPDATE, DELETE")
