"""Turns whose model refused a request as too long."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("turn", sa.Column("overlong_after", sa.Integer()))
