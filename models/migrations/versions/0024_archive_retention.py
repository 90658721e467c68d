"""`assent_system` finds the sessions whose archived content a workspace keeps no longer."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(23, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    is_kept = sa.text("status = 'kept'")
    op.create_index("archive_part_until", "archive_part", ["workspace_id", "until"], postgresql_where=is_kept)
    op.execute("GRANT SELECT (last_seq, archived_through) ON session TO assent_system")
    op.execute("GRANT SELECT (last_seq, until) ON archive_part TO assent_system")
