"""Floods: people for whom more approvals wait than they can judge."""

from alembic import op

from models.migrations.rights import give_app, give_system

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(18, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

TABLE = (
    """
    CREATE TABLE flood (
        id varchar PRIMARY KEY,
        workspace_id varchar NOT NULL REFERENCES workspace,
        person_id varchar NOT NULL REFERENCES person,
        created_at timestamptz NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX flood_of_person ON flood (workspace_id, person_id)",
)


def upgrade() -> None:
    for statement in TABLE:
        op.execute(statement)
    give_app("flood", "SELECT, INSERT, DELETE")
    give_system("flood", "SELECT (id, workspace_id)")
