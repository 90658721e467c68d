"""The outbox: endpoints of webhooks, and their deliveries."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.rights import give_app, give_system

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STRING = sa.String()
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "endpoint",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("url", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("description", STRING, nullable=False),
        sa.Column("enabled_events", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("state", STRING, nullable=False),
        sa.Column("disabled_reason", STRING, nullable=False),
        sa.Column("secret", STRING, nullable=False),
        sa.Column("previous_secret", STRING),
        sa.Column("previous_until", TIME),
        sa.Column("succeeded_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("endpoint_of_workspace", "endpoint", ["workspace_id", "id"])
    op.create_table(
        "delivery",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("endpoint_id", STRING, nullable=False),
        sa.Column("event_id", STRING, nullable=False),
        sa.Column("event_type", STRING, nullable=False),
        sa.Column("subject_id", STRING, nullable=False),
        sa.Column("session_id", STRING),
        sa.Column("status", STRING, nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("attempts", postgresql.JSONB(), nullable=False),
        sa.Column("lease_until", TIME),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("hinted_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoint.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("delivery_of_endpoint", "delivery", ["endpoint_id", "id"])
    op.create_index("delivery_queued", "delivery", ["due_at"], postgresql_where=sa.text("status = 'queued'"))
    op.create_index("delivery_running", "delivery", ["endpoint_id", "lease_until"], postgresql_where=sa.text("status = 'running'"))
    op.create_index("delivery_ended", "delivery", ["ended_at"], postgresql_where=sa.text("ended_at IS NOT NULL"))
    for table in ("endpoint", "delivery"):
        give_app(table, "SELECT, INSERT, UPDATE, DELETE")
    columns = "id, workspace_id, status, due_at, hinted_at, lease_until, ended_at"
    give_system("delivery", f"SELECT ({columns}), UPDATE (hinted_at), DELETE")
