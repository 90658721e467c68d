"""API keys that are bound to one self-hosted environment. No foreign key: a key's row outlives its environment."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_key", sa.Column("environment_id", sa.String(), nullable=True))
