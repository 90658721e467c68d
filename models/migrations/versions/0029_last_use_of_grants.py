"""When a grant last allowed a call, so that people see which grants nobody uses."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(28, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    # Null also for a grant that was used before: its time is known as soon as it is used again.
    op.execute("ALTER TABLE approval_grant ADD COLUMN last_used_at timestamptz")
