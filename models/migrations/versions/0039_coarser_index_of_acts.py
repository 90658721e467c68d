"""The index of acts by time has an entry for 32 pages, until now for 16: each look at the newest acts reads all entries."""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(38, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("DROP INDEX audit_at")
    op.execute("CREATE INDEX audit_at ON audit USING brin (at) WITH (pages_per_range = 32, autosummarize = true)")
