"""The time of an anchor, so that the doctor names one whose acts stay."""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(27, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    # Anchors from before count from now on. An earlier release leaves the time to the default.
    op.execute("ALTER TABLE audit_anchor ADD COLUMN created_at timestamptz NOT NULL DEFAULT assent_now()")
