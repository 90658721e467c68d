"""What turns consume: the usage of every attempt, and the sums of each day."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.rights import give_app

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

STRING = sa.String()
BIG = sa.BigInteger()
TIME = sa.DateTime(timezone=True)
COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation_1h_input_tokens",
    "web_search_requests",
    "web_fetch_requests",
)


def upgrade() -> None:
    op.add_column("session", sa.Column("max_list_cost", sa.Numeric()))
    op.add_column("session", sa.Column("context_tokens", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("session", sa.Column("context_at", TIME))
    op.add_column("session", sa.Column("active_seconds", sa.Float(), nullable=False, server_default="0"))
    op.add_column("session", sa.Column("active_since", TIME))
    op.add_column("turn", sa.Column("quote", postgresql.JSONB()))
    op.create_table(
        "turn_usage",
        sa.Column("turn_id", STRING, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("request", sa.Integer(), nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("thread_id", STRING, nullable=False),
        sa.Column("agent_id", STRING, nullable=False),
        sa.Column("person_id", STRING),
        sa.Column("provider", STRING, nullable=False),
        sa.Column("model", STRING, nullable=False),
        sa.Column("at", TIME, nullable=False),
        *(sa.Column(name, BIG, nullable=False) for name in COUNTS),
        sa.Column("estimated", sa.Boolean(), nullable=False),
        sa.Column("price", postgresql.JSONB()),
        sa.Column("cost", sa.Numeric()),
        sa.Column("cache_savings", sa.Numeric()),
        sa.PrimaryKeyConstraint("turn_id", "attempt", "request"),
    )
    op.create_index("turn_usage_of_workspace", "turn_usage", ["workspace_id", "at"])
    op.create_index("turn_usage_of_session", "turn_usage", ["session_id", "at"])
    op.create_table(
        "daily_usage",
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("agent_id", STRING, nullable=False),
        sa.Column("person_id", STRING, nullable=False),
        sa.Column("provider", STRING, nullable=False),
        sa.Column("model", STRING, nullable=False),
        sa.Column("requests", BIG, nullable=False),
        sa.Column("estimated_requests", BIG, nullable=False),
        sa.Column("unpriced_requests", BIG, nullable=False),
        *(sa.Column(name, BIG, nullable=False) for name in COUNTS),
        sa.Column("cost", sa.Numeric(), nullable=False),
        sa.Column("cache_savings", sa.Numeric(), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "day", "agent_id", "person_id", "provider", "model"),
        postgresql_with={"fillfactor": "70"},
    )
    for table in ("turn_usage", "daily_usage"):
        give_app(table, "SELECT, INSERT, UPDATE")
