"""What a person keeps of the inbox: lists with a name, and the groups that are folded."""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(30, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("ALTER TABLE person ADD COLUMN saved_views jsonb, ADD COLUMN folded_groups jsonb")
    op.execute("GRANT UPDATE (saved_views, folded_groups) ON person TO assent_app")
