"""A failing endpoint pauses as a whole, and how soon an endpoint answers."""

import sqlalchemy as sa
from alembic import op

from models.migrations.rights import give_system

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("endpoint", sa.Column("paused_until", sa.DateTime(timezone=True)))
    op.add_column("endpoint", sa.Column("last_seconds", sa.Float()))
    # Deliveries that one transaction queues are due at the same time: without the id, each claim would sort them.
    op.drop_index("delivery_waiting", "delivery")
    op.create_index("delivery_waiting", "delivery", ["endpoint_id", "due_at", "id"], postgresql_where=sa.text("status = 'queued'"))
    give_system("endpoint", "SELECT (id, failing_since, paused_until)")
