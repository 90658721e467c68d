"""`assent_read_sweeps` says when each sweep last succeeded, for the pages of all workspaces: the times tell nothing of any."""

from models.migrations.rights import create_definer_functions

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(20, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

FUNCTION = {
    "assent_read_sweeps()": """
        RETURNS TABLE (sweep text, succeeded_at timestamptz)
        AS $$
            SELECT labels ->> 'sweep', to_timestamp(value) FROM metric
            WHERE name = 'assent_sweep_last_success_timestamp_seconds'
        $$
    """,
}


def upgrade() -> None:
    create_definer_functions(FUNCTION)
