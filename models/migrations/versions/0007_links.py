"""Links of messages, by which a person sees and decides one approval."""

import sqlalchemy as sa
from alembic import op

from models.migrations.rights import create_definer_functions, give_app, give_definer, give_system

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STRING = sa.String()
TIME = sa.DateTime(timezone=True)

DEFINER_FUNCTIONS = {
    # The link with this token, in any workspace: see `models.outbox.link.find`.
    "assent_find_link(digest text, code text)": """
        RETURNS TABLE (id text, workspace_id text)
        AS $$
            SELECT id, workspace_id FROM link
            WHERE token_sha256 = digest
                AND (used_at IS NULL OR (tries < 5 AND code_hmac = code AND used_at > assent_now() - interval '1 minute'))
        $$
    """,
}


def upgrade() -> None:
    op.create_table(
        "link",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("approval_id", STRING, nullable=False),
        sa.Column("person_id", STRING, nullable=False),
        sa.Column("input_sha256", STRING, nullable=False),
        sa.Column("token_sha256", STRING, nullable=False),
        sa.Column("code_hmac", STRING, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("used_at", TIME),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("token_sha256"),
    )
    op.create_index("link_of_approval", "link", ["approval_id", "person_id"])
    op.create_index("link_of_session", "link", ["session_id"])
    op.create_index("link_expiry", "link", ["expires_at"])
    give_app("link", "SELECT, INSERT, UPDATE, DELETE")
    give_system("link", "SELECT (id, workspace_id, expires_at), DELETE")
    give_definer("link", "SELECT (id, workspace_id, token_sha256, code_hmac, tries, used_at)")
    create_definer_functions(DEFINER_FUNCTIONS)
