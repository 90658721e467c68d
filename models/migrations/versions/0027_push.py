"""Push: a channel may be a browser, which ends with a sign-in; and each channel may have a delay."""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(26, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("ALTER TABLE channel ADD COLUMN sign_in_id varchar, ADD COLUMN delay_seconds integer")
