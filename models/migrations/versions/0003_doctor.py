"""`assent_system` reads the statuses and times by which the doctor finds sessions and work that stand still. No content."""

from alembic import op

from models.migrations.rights import give_system

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = ("0002", "0001")
"""Revisions of earlier releases that work with the schema after this migration."""

MORE_COLUMNS = {
    "approval": "tool_call_id, thread_id, created_at",
    "failure": "since, error",
    "halt": "started_at",
    "thread": "status, turn_id, unread",
    "workspace": "seal_alarm, seal_stopped",
}
"""Columns that `assent_system` may read from now on, beside those of the baseline."""


def upgrade() -> None:
    for table, columns in MORE_COLUMNS.items():
        op.execute(f"GRANT SELECT ({columns}) ON {table} TO assent_system")
    give_system("session", "SELECT (id, workspace_id, status, updated_at)")
