"""A channel may tell what came of calls that were allowed, and the page of a link that decided goes on for an hour."""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(31, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

FIND_LINK = """
    CREATE OR REPLACE FUNCTION assent_find_link(digest text, code text) RETURNS TABLE (id text, workspace_id text) AS $$
        SELECT id, workspace_id FROM link
        WHERE token_sha256 = digest
            AND (used_at IS NULL OR (tries < 5 AND code_hmac = code AND used_at > assent_now() - interval '1 hour'))
    $$ LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp
"""
"""As before, but for the hour: the right code found a link that a decision used up for a minute."""


def upgrade() -> None:
    op.execute("ALTER TABLE channel ADD COLUMN tells_outcomes boolean NOT NULL DEFAULT false")
    op.execute("GRANT CREATE ON SCHEMA public TO assent_definer")
    op.execute("SET LOCAL ROLE assent_definer")
    op.execute(FIND_LINK)
    op.execute("RESET ROLE")
    op.execute("REVOKE CREATE ON SCHEMA public FROM assent_definer")
