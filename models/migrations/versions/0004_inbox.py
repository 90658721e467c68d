"""The inbox: what tools workers saw of the files, for the people who decide."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "evidence",
        sa.Column("approval_id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("body", postgresql.JSONB(), nullable=False),
        sa.Column("looked_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["approval_id"], ["approval.id"]),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.PrimaryKeyConstraint("approval_id"),
    )
    op.create_index("ix_evidence_session_id", "evidence", ["session_id"])
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON evidence TO assent_app")
    op.execute("ALTER TABLE evidence ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY one_workspace ON evidence TO assent_app USING (workspace_id = current_setting('assent.workspace', true))"
    )
