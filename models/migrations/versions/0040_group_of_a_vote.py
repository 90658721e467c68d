"""A vote by a right that was delegated for one group names the group: it counts only where the approvers name it."""

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(39, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("ALTER TABLE vote ADD COLUMN group_id varchar")
    op.execute("UPDATE vote SET group_id = delegation.group_id FROM delegation WHERE delegation.id = vote.delegation_id")
