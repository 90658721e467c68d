"""Channels of people and workspaces, their notifications, and encrypted signing secrets of endpoints."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.rights import give_app, give_system

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STRING = sa.String()
TIME = sa.DateTime(timezone=True)
CLEAR = "Its signing secret was stored in clear text. Regenerate the secret, then enable the endpoint."


def upgrade() -> None:
    _channels()
    _changes()
    _notifications()
    for table in ("channel", "approval_change", "notification"):
        give_app(table, "SELECT, INSERT, UPDATE, DELETE")
    columns = "id, workspace_id, status, due_at, hinted_at, lease_until, ended_at"
    give_system("notification", f"SELECT ({columns}), UPDATE (hinted_at), DELETE")
    give_system("approval_change", "SELECT (id, workspace_id, due_at, hinted_at), UPDATE (hinted_at)")
    # A secret can only be encrypted by a process with the public key. Nothing signs with a secret that stood in clear text.
    op.execute(
        sa.text(
            "UPDATE endpoint SET state = 'disabled', disabled_reason = :reason, secret = '', previous_secret = NULL,"
            " previous_until = NULL WHERE secret LIKE 'whsec\\_%'"
        ).bindparams(reason=CLEAR)
    )


def _channels() -> None:
    op.create_table(
        "channel",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("person_id", STRING),
        sa.Column("for_everyone", sa.Boolean(), nullable=False),
        sa.Column("follows_default", sa.Boolean(), nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("address", STRING, nullable=False),
        sa.Column("secret", STRING),
        sa.Column("token_sha256", STRING),
        sa.Column("about", STRING, nullable=False),
        sa.Column("timing", STRING, nullable=False),
        sa.Column("quiet_from", STRING),
        sa.Column("quiet_until", STRING),
        sa.Column("time_zone", STRING, nullable=False),
        sa.Column("state", STRING, nullable=False),
        sa.Column("disabled_reason", STRING, nullable=False),
        sa.Column("error", STRING, nullable=False),
        sa.Column("sent_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("channel_of_workspace", "channel", ["workspace_id", "person_id", "id"])
    op.create_index(
        "channel_following",
        "channel",
        ["workspace_id", "person_id"],
        unique=True,
        postgresql_where=sa.text("follows_default"),
    )
    op.create_index("channel_default", "channel", ["workspace_id"], unique=True, postgresql_where=sa.text("for_everyone"))


def _changes() -> None:
    op.create_table(
        "approval_change",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("approval_id", STRING, nullable=False),
        sa.Column("stage", STRING, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("hinted_at", TIME),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("approval_change_due", "approval_change", ["due_at"])


def _notifications() -> None:
    op.create_table(
        "notification",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("approval_id", STRING, nullable=False),
        sa.Column("channel_id", STRING, nullable=False),
        sa.Column("stage", STRING, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("sent_stage", STRING),
        sa.Column("receipt", postgresql.JSONB()),
        sa.Column("status", STRING, nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("error", STRING, nullable=False),
        sa.Column("lease_until", TIME),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("hinted_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("notification_of_approval", "notification", ["approval_id", "channel_id"], unique=True)
    op.create_index("notification_of_channel", "notification", ["channel_id"])
    op.create_index("notification_queued", "notification", ["due_at"], postgresql_where=sa.text("status = 'queued'"))
    op.create_index("notification_running", "notification", ["lease_until"], postgresql_where=sa.text("status = 'running'"))
    op.create_index("notification_ended", "notification", ["ended_at"], postgresql_where=sa.text("ended_at IS NOT NULL"))
