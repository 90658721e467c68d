"""Events of a sub-agent's thread can be in the session's stream too."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
serves = ("0001",)
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    # A constant default rewrites no row.
    op.add_column("event", sa.Column("cross_posted", sa.Boolean, nullable=False, server_default=sa.false()))
