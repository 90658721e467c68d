"""The doctor tells halts of a restore from others."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None
serves = ("0009", "0008", "0007", "0006", "0005", "0004", "0003", "0002", "0001")
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("GRANT SELECT (backup_at) ON halt TO assent_system")
