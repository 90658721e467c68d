"""Insights: sums of approvals by the day on which people were asked, which the sweep of the metrics adds up.

`assent_closed_approvals` also returns the tool, the agent, who decided, and when people were asked.
"""

from alembic import op

from models.migrations.rights import create_definer_functions, give_app, give_definer

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(15, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

TABLE = """
    CREATE TABLE daily_asks (
        workspace_id varchar NOT NULL,
        about varchar NOT NULL,
        day date NOT NULL,
        name varchar NOT NULL,
        outcome varchar NOT NULL,
        asks integer[] NOT NULL,
        PRIMARY KEY (workspace_id, about, day, name, outcome)
    ) WITH (fillfactor=70)
"""
FUNCTIONS = {
    # The approvals that were closed after `since` and until `till`: by which way, by whom, and when people were asked. No content.
    "assent_closed_approvals(since timestamptz, till timestamptz)": """
        RETURNS TABLE (
            workspace_id text, outcome text, channel text, seconds double precision,
            tool text, agent_id text, person_id text, created_at timestamptz
        )
        AS $$
            SELECT act.workspace_id, act.details ->> 'status', CASE
                    WHEN act.details ->> 'via' = 'link' THEN 'link'
                    WHEN act.details ? 'through' THEN split_part(act.details ->> 'through', ':', 1)
                    WHEN act.principal LIKE 'user:%' THEN 'inbox'
                    WHEN act.principal LIKE 'api_key:%' THEN 'api'
                    ELSE split_part(act.principal, ':', 1)
                END, extract(epoch FROM act.at - approval.created_at)::float8,
                approval.tool, approval.agent_id,
                CASE WHEN act.principal LIKE 'user:%' THEN substr(act.principal, 6) END, approval.created_at
            FROM audit act LEFT JOIN approval ON approval.id = act.subject_id
            WHERE act.at > since AND act.at <= till
                AND act.action IN ('approval.decided', 'approval.expired', 'approval.cancelled')
        $$
    """,
    # Adds approvals to the sums of their days. The arrays are the columns of `daily_asks`; each of `sums` is an array as text.
    "assent_add_asks(workspaces text[], abouts text[], days date[], names text[], outcomes text[], sums text[])": """
        RETURNS void AS $$
            INSERT INTO daily_asks (workspace_id, about, day, name, outcome, asks)
            SELECT workspace_id, about, day, name, outcome, asks::integer[]
            FROM unnest(workspaces, abouts, days, names, outcomes, sums) added (workspace_id, about, day, name, outcome, asks)
            ON CONFLICT (workspace_id, about, day, name, outcome) DO UPDATE SET asks = ARRAY(
                SELECT coalesce(old, 0) + coalesce(new, 0)
                FROM unnest(daily_asks.asks, excluded.asks) WITH ORDINALITY both_sums (old, new, place) ORDER BY place
            )
        $$
    """,
}


def upgrade() -> None:
    op.execute(TABLE)
    give_app("daily_asks", "SELECT")
    give_definer("daily_asks", "SELECT, INSERT, UPDATE (asks)")
    op.execute("GRANT SELECT (tool, agent_id) ON approval TO assent_definer")
    op.execute("DROP FUNCTION assent_closed_approvals(timestamptz, timestamptz)")
    create_definer_functions(FUNCTIONS, caller="assent_system")
