"""Links of messages, by which a person sees and decides one approval."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0005"
branch_labels = None
depends_on = None

STRING = sa.String()
TIME = sa.DateTime(timezone=True)


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
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON link TO assent_app")
    op.execute("ALTER TABLE link ENABLE ROW LEVEL SECURITY")
    op.execute("CREATE POLICY one_workspace ON link TO assent_app USING (workspace_id = current_setting('assent.workspace', true))")
    op.execute("GRANT SELECT (id, workspace_id, expires_at), DELETE ON link TO assent_system")
    op.execute("CREATE POLICY every_workspace ON link TO assent_system USING (true)")
    create_definer_function()


def create_definer_function() -> None:
    """`assent_find_link` finds a link by its token in any workspace, and returns ids alone: see `models.outbox.link.find`."""
    op.execute("GRANT SELECT (id, workspace_id, token_sha256, code_hmac, tries, used_at) ON link TO assent_definer")
    op.execute("CREATE POLICY definer_functions ON link TO assent_definer USING (true)")
    op.execute("GRANT CREATE ON SCHEMA public TO assent_definer")
    op.execute("""
        CREATE FUNCTION assent_find_link(digest text, code text) RETURNS TABLE (id text, workspace_id text)
        LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp
        AS $$
            SELECT id, workspace_id FROM link
            WHERE token_sha256 = digest
                AND (used_at IS NULL OR (tries < 5 AND code_hmac = code AND used_at > assent_now() - interval '1 minute'))
        $$
    """)
    op.execute("REVOKE ALL ON FUNCTION assent_find_link FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION assent_find_link TO assent_app")
    op.execute("ALTER FUNCTION assent_find_link OWNER TO assent_definer")
    op.execute("REVOKE CREATE ON SCHEMA public FROM assent_definer")
