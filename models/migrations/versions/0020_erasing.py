"""People and sessions are erased: a text of the audit and a stored response say whom or what they are about."""

import sqlalchemy as sa
from alembic import op

from models.migrations.rights import create_definer_functions

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(19, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

FORGET = {
    # The only way in which the address of a person changes: it becomes the id, which is no address.
    "assent_forget_person(person_id text, shown_name text, moment timestamptz)": """
        RETURNS void AS $$
            UPDATE person SET email = id, name = shown_name, erased_at = moment
            WHERE id = person_id AND workspace_id = current_setting('assent.workspace', true)
        $$
    """,
}


def upgrade() -> None:
    # Columns that are null rewrite no row, and an index of a new column of nulls holds nothing.
    op.add_column("person", sa.Column("erased_at", sa.DateTime(timezone=True)))
    op.add_column("removal", sa.Column("erased_by", sa.String))
    for table in ("audit_text", "stored_response"):
        op.add_column(table, sa.Column("about", sa.String))
        op.create_index(f"{table}_about", table, ["about"], postgresql_where=sa.text("about IS NOT NULL"))
    op.execute("GRANT UPDATE (email, name, erased_at) ON person TO assent_definer")
    create_definer_functions(FORGET)
    op.execute("GRANT DELETE ON identity, invitation, stored_response TO assent_app")
