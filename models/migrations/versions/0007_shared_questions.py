"""A thread names the question about money for which it waits, which several threads can share."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None
serves = ("0006", "0005", "0004", "0003", "0002", "0001")
"""Revisions of earlier releases that work with the schema after this migration."""

WAITING = """
    UPDATE thread SET cap_approval_id = approval.id FROM approval
    WHERE approval.session_id = thread.session_id AND approval.thread_id = thread.id AND approval.tool_call_id IS NULL
    AND approval.status = 'pending'
"""


def upgrade() -> None:
    op.add_column("thread", sa.Column("cap_approval_id", sa.String))
    op.execute(WAITING)
    op.execute("GRANT SELECT (cap_approval_id) ON thread TO assent_system")
