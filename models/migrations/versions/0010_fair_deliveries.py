"""Deliveries of one endpoint hold up no other: since when an endpoint fails, and an index from endpoint to endpoint."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("endpoint", sa.Column("failing_since", sa.DateTime(timezone=True)))
    op.create_index("delivery_waiting", "delivery", ["endpoint_id", "due_at"], postgresql_where=sa.text("status = 'queued'"))
    op.drop_index("delivery_queued", "delivery")
    op.execute("GRANT SELECT (endpoint_id) ON delivery TO assent_system")
