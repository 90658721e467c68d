"""Indexes of the sessions that go on by themselves, and of those whose run failed, was refused or is out of budget."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(24, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    for name, condition in (
        ("session_at_work", "status IN ('running', 'rescheduling', 'stopping')"),
        ("session_needing_attention", "status = 'idle' AND stop_reason ->> 'type' <> 'end_turn'"),
    ):
        op.create_index(name, "session", ["workspace_id", "created_at"], postgresql_where=sa.text(condition))
