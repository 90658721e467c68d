"""Sessions say where their next shell command starts, so that no worker looks at the files for each approval of one."""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(29, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("ALTER TABLE session ADD COLUMN shell_start jsonb")
