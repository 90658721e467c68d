"""`assent_system` reads which messages of a session's threads were read, and which thread began which. No content."""

from alembic import op

from models.migrations.rights import give_system

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(12, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""


def upgrade() -> None:
    op.execute("GRANT SELECT (parent_id) ON thread TO assent_system")
    give_system("event", "SELECT (session_id, seq, thread_id, type, turn_id, processed_at)")
