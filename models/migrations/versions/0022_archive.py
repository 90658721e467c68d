"""The archive: parts of sessions, contents in the database, and how far a session is archived."""

import sqlalchemy as sa
from alembic import op

from models.migrations.rights import give_app, give_system

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(21, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration, as long as nothing is in the archive."""


def upgrade() -> None:
    # A constant default rewrites no row.
    op.add_column("session", sa.Column("archived_through", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("session", sa.Column("archive_from", sa.DateTime(timezone=True)))
    op.create_index("session_to_archive", "session", ["workspace_id", sa.text("coalesce(archive_from, created_at)")])
    time = sa.DateTime(timezone=True)
    op.create_table(
        "archive_part",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("workspace_id", sa.String, nullable=False),
        sa.Column("session_id", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("first_seq", sa.BigInteger, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("after", time),
        sa.Column("until", time, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("sha256", sa.LargeBinary),
        sa.Column("stored_in", sa.String, nullable=False),
        sa.Column("fault", sa.String),
        sa.Column("created_at", time, nullable=False),
        sa.Column("due_at", time),
        sa.Column("checked_at", time),
    )
    op.create_index("archive_part_of_session", "archive_part", ["session_id", "last_seq"])
    op.create_index("archive_part_due", "archive_part", ["due_at"], postgresql_where=sa.text("status <> 'kept'"))
    last_check = sa.text("coalesce(checked_at, created_at)")
    op.create_index("archive_part_checked", "archive_part", [last_check], postgresql_where=sa.text("status = 'kept'"))
    op.create_index("archive_part_faulty", "archive_part", ["workspace_id"], postgresql_where=sa.text("fault IS NOT NULL"))
    op.create_table(
        "archive_content",
        sa.Column("part_id", sa.String, primary_key=True),
        sa.Column("workspace_id", sa.String, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.execute("ALTER TABLE archive_content ALTER content SET STORAGE EXTERNAL")  # encrypted: no compression makes it smaller
    give_app("archive_part", "SELECT, INSERT, UPDATE, DELETE", of_session=True)
    give_app("archive_content", "SELECT, INSERT, DELETE")
    op.execute("GRANT DELETE ON reply, call_input, call_result TO assent_app")
    op.execute("GRANT SELECT (archive_from, created_at) ON session TO assent_system")
    op.execute("GRANT SELECT (retention) ON workspace TO assent_system")
    columns = "id, workspace_id, session_id, status, due_at, fault, checked_at, created_at"
    give_system("archive_part", f"SELECT ({columns})")
