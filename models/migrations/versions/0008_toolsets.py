"""Toolsets and MCP servers: what tools there are behind an address; calls of them, their questions, and results of any length."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
MINE = "workspace_id = current_setting('assent.workspace', true)"


def upgrade() -> None:
    op.create_table(
        "toolset",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("tools", JSONB, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("announced_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
    )
    # The operator's own, no tenant's: workers announce it, everybody reads it.
    op.execute("GRANT SELECT ON toolset TO assent_app")
    op.execute("GRANT SELECT, INSERT, UPDATE ON toolset TO assent_system")

    op.create_table(
        "listing",
        sa.Column("workspace_id", sa.String(), sa.ForeignKey("workspace.id"), primary_key=True),
        sa.Column("url", sa.String(), primary_key=True),
        sa.Column("tools", JSONB, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("listed_at", TIME, nullable=False),
        sa.Column("changed_at", TIME, nullable=True),
    )
    op.create_table(
        "stored_result",
        sa.Column("tool_call_id", sa.String(), sa.ForeignKey("tool_call.id"), primary_key=True),
        sa.Column("workspace_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), sa.ForeignKey("session.id"), nullable=False, index=True),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
    )
    for table in ("listing", "stored_result"):
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO assent_app")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY one_workspace ON {table} TO assent_app USING ({MINE})")

    op.execute("GRANT SELECT (workspace_id, url), UPDATE (changed_at) ON listing TO assent_system")
    op.execute("CREATE POLICY every_workspace ON listing TO assent_system USING (true)")
    op.create_index("listing_of_url", "listing", ["url"])

    for name in ("server", "address", "tool", "queue", "cached_from"):
        op.add_column("tool_call", sa.Column(name, sa.String(), nullable=True))
    for name in ("cache", "structured", "question", "answers"):
        op.add_column("tool_call", sa.Column(name, JSONB, nullable=True))
    op.add_column("tool_call", sa.Column("workdir", sa.Boolean(), server_default=sa.true(), nullable=False))
    op.add_column("tool_call", sa.Column("answer_seconds", sa.Float(), nullable=True))
    op.add_column("tool_call", sa.Column("answer_by", TIME, nullable=True))
    with_client = sa.text("status = 'with_client' AND answer_by IS NOT NULL")
    op.create_index("tool_call_with_client", "tool_call", ["answer_by"], postgresql_where=with_client)
    cached = sa.text("cache IS NOT NULL AND status = 'done'")
    op.create_index("tool_call_cached", "tool_call", ["workspace_id", "input_sha256", "settled_at"], postgresql_where=cached)
    op.drop_index("tool_call_queued", "tool_call")
    op.create_index("tool_call_queued", "tool_call", ["queue", "due_at"], postgresql_where=sa.text("status = 'queued'"))
    op.execute("GRANT SELECT (queue, address, answer_by) ON tool_call TO assent_system")

    op.add_column("session", sa.Column("long_results", sa.Boolean(), server_default=sa.false(), nullable=False))
    for name in ("annotations", "questions", "attempt_told"):
        op.add_column("approval", sa.Column(name, JSONB, nullable=True))
    op.add_column("attempt", sa.Column("output", sa.Text(), nullable=True))
    op.add_column("attempt", sa.Column("late_result", JSONB, nullable=True))
