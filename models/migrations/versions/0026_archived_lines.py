"""An archived session keeps its first and its last line, for lists."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(25, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.add_column("session", sa.Column("archived_lines", JSONB))
