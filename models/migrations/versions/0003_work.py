"""Self-hosted environments: which sessions have their tools run by the client, and the work that its workers poll for."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("session", sa.Column("self_hosted", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_table(
        "work",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.String(), nullable=False),
        sa.Column("environment_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("offered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acknowledged_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stop_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["environment_id"], ["environment.id"]),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    unstopped = sa.text("status <> 'stopped'")
    op.create_index("work_newest", "work", ["environment_id", "created_at", "id"], unique=False)
    op.create_index("work_of_session", "work", ["session_id"], unique=False)
    op.create_index("work_one_at_a_time", "work", ["session_id"], unique=True, postgresql_where=unstopped)
    op.create_index("work_waiting", "work", ["environment_id", "due_at"], unique=False, postgresql_where=unstopped)
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON work TO assent_app")
    op.execute("ALTER TABLE work ENABLE ROW LEVEL SECURITY")
    op.execute("CREATE POLICY one_workspace ON work TO assent_app USING (workspace_id = current_setting('assent.workspace', true))")
