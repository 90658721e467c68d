"""The usage of a day and the uses of standing grants are summed by a sweep, behind the commits that count them.

Processes of the release before sum usage themselves: they do not name the column `summed`. The last seconds of what newer processes
count are not in the sums that they read. They correct an estimate that a newer process has made and no sweep has summed yet twice.
"""

from alembic import op

from models.migrations.rights import give_app, give_system

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(35, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

USES = """
    CREATE TABLE grant_use (
        id varchar PRIMARY KEY,
        workspace_id varchar NOT NULL,
        grant_id varchar NOT NULL REFERENCES approval_grant ON DELETE CASCADE,
        used_at timestamptz NOT NULL
    )
"""


def upgrade() -> None:
    op.execute("ALTER TABLE turn_usage ADD COLUMN summed boolean NOT NULL DEFAULT true")
    op.execute("CREATE INDEX turn_usage_to_sum ON turn_usage (workspace_id) WHERE NOT summed")
    op.execute("GRANT SELECT (summed) ON turn_usage TO assent_system")
    op.execute(USES)
    op.execute("CREATE INDEX grant_use_of_grant ON grant_use (grant_id)")
    give_app("grant_use", "SELECT, INSERT, DELETE")
    give_system("grant_use", "SELECT (workspace_id)")
