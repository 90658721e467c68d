"""Votes: who may decide, delegations, escalation, halts, and sessions whose client cannot approve."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.rights import give_app

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STRING = sa.String()
TIME = sa.DateTime(timezone=True)
JSON = postgresql.JSONB()
STRINGS = postgresql.ARRAY(sa.Text())

APP_RIGHTS = {
    "delegation": "SELECT, INSERT, UPDATE",
    "halt": "SELECT, INSERT, UPDATE",
    "vote": "SELECT, INSERT, UPDATE, DELETE",
}
"""What `assent_app` may do with the rows of one workspace."""

SYSTEM_COLUMNS = {
    "approval": "deadline_from",
    "halt": "id, workspace_id, ended_at, settled_at",
    "tool_call": "deadline_from",
}
"""The columns that `assent_system` may read of all workspaces, beside those of the baseline."""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")
    add_columns()
    create_votes()
    create_delegations()
    create_halts()
    grant_rights()


def add_columns() -> None:
    op.add_column("session", sa.Column("on_ask", STRING, server_default="inbox", nullable=False))
    op.add_column("session", sa.Column("on_behalf_of", STRING))
    op.add_column("session", sa.Column("speakers", STRINGS, server_default="{}", nullable=False))
    op.add_column("approval", sa.Column("quorum", JSON))
    op.add_column("approval", sa.Column("escalation", JSON))
    op.add_column("approval", sa.Column("level", sa.Integer(), server_default="0", nullable=False))
    op.add_column("approval", sa.Column("started_by", STRINGS, server_default="{}", nullable=False))
    op.add_column("approval", sa.Column("deadline_from", TIME, server_default=sa.func.now(), nullable=False))
    op.add_column("approval_grant", sa.Column("voters", JSON))
    op.add_column("tool_call", sa.Column("deadline_from", TIME))
    op.create_index(
        "approval_queue", "approval", ["workspace_id", "expires_at", "id"], postgresql_where=sa.text("status = 'pending'")
    )
    op.create_index("tool_call_held", "tool_call", ["workspace_id"], postgresql_where=sa.text("status = 'held'"))


def create_votes() -> None:
    op.create_table(
        "vote",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("approval_id", STRING, nullable=False),
        sa.Column("person_id", STRING, nullable=False),
        sa.Column("for_person_id", STRING, nullable=False),
        sa.Column("delegation_id", STRING),
        sa.Column("result", STRING, nullable=False),
        sa.Column("input_sha256", STRING, nullable=False),
        sa.Column("choice_sha256", STRING, nullable=False),
        sa.Column("decision", JSON, nullable=False),
        sa.Column("event_id", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("voided_at", TIME),
        sa.ForeignKeyConstraint(["approval_id"], ["approval.id"]),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.ForeignKeyConstraint(["for_person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    for name, column in (("vote_one_by_person", "person_id"), ("vote_one_for_person", "for_person_id")):
        op.create_index(name, "vote", ["approval_id", column], unique=True, postgresql_where=sa.text("voided_at IS NULL"))
    op.create_index("vote_of_session", "vote", ["session_id"])


def create_delegations() -> None:
    op.create_table(
        "delegation",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("from_person_id", STRING, nullable=False),
        sa.Column("to_person_id", STRING, nullable=False),
        sa.Column("group_id", STRING),
        sa.Column("starts_at", TIME, nullable=False),
        sa.Column("ends_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("created_by", STRING, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("ended_by", STRING),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["from_person_id"], ["person.id"]),
        sa.ForeignKeyConstraint(["to_person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("delegation_newest", "delegation", ["workspace_id", "created_at", "id"])
    live = sa.text("ended_at IS NULL")
    op.create_index("delegation_to", "delegation", ["workspace_id", "to_person_id"], postgresql_where=live)
    op.create_index("delegation_from", "delegation", ["workspace_id", "from_person_id"], postgresql_where=live)


def create_halts() -> None:
    op.create_table(
        "halt",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("reason", STRING),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("started_by", STRING, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("ended_by", STRING),
        sa.Column("settled_at", TIME),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("halt_newest", "halt", ["workspace_id", "started_at"])
    op.create_index("halt_open", "halt", ["workspace_id"], unique=True, postgresql_where=sa.text("ended_at IS NULL"))
    op.create_index("halt_unsettled", "halt", ["ended_at"], postgresql_where=sa.text("ended_at IS NOT NULL AND settled_at IS NULL"))


def grant_rights() -> None:
    for table, rights in APP_RIGHTS.items():
        give_app(table, rights)
    for table, columns in SYSTEM_COLUMNS.items():
        op.execute(f"GRANT SELECT ({columns}) ON {table} TO assent_system")
    op.execute("CREATE POLICY every_workspace ON halt TO assent_system USING (true)")
