"""The sweep that sums uses of grants finds those of one workspace by an index, however many uses others have."""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(37, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("CREATE INDEX grant_use_of_workspace ON grant_use (workspace_id)")
