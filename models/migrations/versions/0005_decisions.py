"""Decisions: grants, edited inputs, what happens at a deadline, reminders, and the workspace's own policy."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

JSONB = postgresql.JSONB(astext_type=sa.Text())
TIME = sa.DateTime(timezone=True)
STRINGS = postgresql.ARRAY(sa.Text())


def upgrade() -> None:
    op.create_table(
        "approval_grant",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("approval_id", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("identity", sa.String(), nullable=False),
        sa.Column("match", JSONB, nullable=False),
        sa.Column("covers", sa.String(), nullable=False),
        sa.Column("given_by", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("max_uses", sa.Integer(), nullable=True),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("revoked_by", sa.String(), nullable=True),
        sa.Column("swept_to", sa.String(), nullable=True),
        sa.Column("swept_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"]),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    live = sa.text("revoked_at IS NULL")
    op.create_index("grant_of_session", "approval_grant", ["session_id"], postgresql_where=sa.text("session_id IS NOT NULL"))
    op.create_index("grant_of_agent", "approval_grant", ["agent_id"], postgresql_where=live)
    op.create_index("grant_newest", "approval_grant", ["workspace_id", "created_at", "id"])
    unswept = sa.text("revoked_at IS NULL AND swept_at IS NULL")
    op.create_index("grant_unswept", "approval_grant", ["created_at"], postgresql_where=unswept)
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON approval_grant TO assent_app")
    seen = "id, workspace_id, session_id, agent_id, tool, created_at, revoked_at, swept_to, swept_at"
    op.execute(f"GRANT SELECT ({seen}) ON approval_grant TO assent_system")
    op.execute("ALTER TABLE approval_grant ENABLE ROW LEVEL SECURITY")
    mine = "workspace_id = current_setting('assent.workspace', true)"
    op.execute(f"CREATE POLICY one_workspace ON approval_grant TO assent_app USING ({mine})")
    op.execute("CREATE POLICY every_workspace ON approval_grant TO assent_system USING (true)")

    op.add_column("tool_call", sa.Column("grants", STRINGS, nullable=True))
    op.add_column("tool_call", sa.Column("asking", JSONB, nullable=True))
    op.add_column("tool_call", sa.Column("proposed_input", JSONB, nullable=True))
    op.add_column("approval", sa.Column("agent_id", sa.String(), nullable=True))
    op.add_column("approval", sa.Column("input_schema", JSONB, nullable=True))
    op.add_column("approval", sa.Column("decided_input", sa.String(), nullable=True))
    op.add_column("approval", sa.Column("decided_sha256", sa.String(), nullable=True))
    op.add_column("approval", sa.Column("on_timeout", sa.String(), server_default="deny", nullable=False))
    op.add_column("approval", sa.Column("remind_at", TIME, nullable=True))
    op.add_column("approval", sa.Column("reminded_at", TIME, nullable=True))
    pending = sa.text("status = 'pending' AND remind_at IS NOT NULL")
    op.create_index("approval_to_remind", "approval", ["remind_at"], postgresql_where=pending)
    pending = sa.text("status = 'pending' AND kind = 'tool_call'")
    op.create_index("approval_waiting_of_agent", "approval", ["agent_id", "tool"], postgresql_where=pending)
    op.execute("GRANT SELECT (agent_id, tool, kind, remind_at) ON approval TO assent_system")

    op.add_column("workspace", sa.Column("policy", JSONB, nullable=True))
    op.add_column("workspace", sa.Column("approval", JSONB, nullable=True))
