"""When an issuer took the role admin away from the last admin of a workspace, who keeps it."""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(34, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("ALTER TABLE member ADD COLUMN kept_admin_at timestamptz")
