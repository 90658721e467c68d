"""Long histories: what shortens them, and how often a turn shortened its own."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.rights import give_app

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

STRING = sa.String()


def upgrade() -> None:
    op.add_column("turn", sa.Column("folds", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "fold",
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("through", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("turn_id", STRING, nullable=False),
        sa.Column("summary", postgresql.JSONB()),
        sa.Column("provider", STRING),
        sa.Column("model", STRING),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.PrimaryKeyConstraint("session_id", "kind", "through"),
    )
    give_app("fold", "SELECT, INSERT, UPDATE, DELETE")
