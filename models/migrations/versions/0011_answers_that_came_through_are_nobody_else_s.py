"""Of requests without a key each has an answer of its own, until it has come through to its client."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("answer", sa.Column("slip", sa.String(), nullable=True))
    op.add_column("answer", sa.Column("offered_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index("answer_without_key", "answer", ["slip"], postgresql_where=sa.text("slip IS NOT NULL"))
