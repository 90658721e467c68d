"""The pending approvals of a session are found by an index of their own."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = ("0005", "0004", "0003", "0002", "0001")
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("CREATE INDEX approval_pending ON approval (session_id) WHERE status = 'pending'")
