"""The index of sessions that need attention also has those whose run reached a limit.

Runs that end in processes of the release before, or ended before, do not name the limit, and so count as done.
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(36, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

CONDITION = "status = 'idle' AND (stop_reason ->> 'type' <> 'end_turn' OR stop_reason ->> 'limit_reached' IS NOT NULL)"
"""Wider than the condition of the release before, so that its queries use the new index as well."""


def upgrade() -> None:
    op.create_index("session_unfinished", "session", ["workspace_id", "created_at"], postgresql_where=sa.text(CONDITION))
    op.drop_index("session_needing_attention")
    op.execute("ALTER INDEX session_unfinished RENAME TO session_needing_attention")
