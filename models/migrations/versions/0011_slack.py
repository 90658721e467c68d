"""Slack: its users, the people that they stand for, and replies to their clicks."""

import sqlalchemy as sa
from alembic import op

from models.migrations.rights import give_app

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

STRING = sa.String()
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "slack_user",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("team_id", STRING, nullable=False),
        sa.Column("slack_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("person_id", STRING),
        sa.Column("link_sha256", STRING),
        sa.Column("link_until", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("linked_at", TIME),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("workspace_id", "team_id", "slack_id"),
    )
    op.create_index("slack_user_of_person", "slack_user", ["workspace_id", "person_id"])
    op.create_table(
        "slack_reply",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("conversation_id", STRING, nullable=False),
        sa.Column("slack_id", STRING, nullable=False),
        sa.Column("slack_user_id", STRING, nullable=False),
        sa.Column("text", STRING, nullable=False),
        sa.Column("offers_link", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    for table in ("slack_user", "slack_reply"):
        give_app(table, "SELECT, INSERT, UPDATE, DELETE")
