"""Metrics: sums of all workspaces that a sweep adds up from rows, and functions that read them and what waits now.

`assent_app` has no right to the sums: it reads them by `assent_read_metrics`, which wants the hash of a key with that scope.
"""

from alembic import op

from models.migrations.rights import create_definer_functions, give_definer, give_system

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = ("0003", "0002", "0001")
"""Revisions of earlier releases that work with the schema after this migration."""

TABLES = (
    """
    CREATE TABLE metric (
        name varchar NOT NULL,
        labels jsonb NOT NULL,
        value double precision NOT NULL,
        PRIMARY KEY (name, labels)
    )
    """,
    "ALTER TABLE metric ENABLE ROW LEVEL SECURITY",
    # Sums begin with this migration: what was before is not added up.
    """
    INSERT INTO metric SELECT 'assent_metrics_counted_until_timestamp_seconds', '{}', extract(epoch FROM assent_now())
    """,
    # A BRIN index is small and costs an insert next to nothing, because rows are stored in the order of time.
    "CREATE INDEX turn_usage_at ON turn_usage USING brin (at) WITH (pages_per_range='16', autosummarize='true')",
)

USAGE = """
    workspace_id, provider, model, at, estimated, cost,
    input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens
"""

DEFINER_RIGHTS = {
    "approval": "SELECT (id, workspace_id, status, kind, created_at, expires_at, deadline_from)",
    "approval_change": "SELECT (due_at)",
    "audit": "SELECT (workspace_id, at, principal, action, subject_id, details)",
    "delivery": "SELECT (endpoint_id, status, due_at)",
    "endpoint": "SELECT (id, paused_until)",
    "halt": "SELECT (workspace_id, started_at, ended_at)",
    "metric": "SELECT, INSERT, UPDATE",
    "notification": "SELECT (status, due_at)",
    "workspace": "SELECT (id, seal_alarm, seal_stopped)",
}
MORE_DEFINER_RIGHTS = {
    "tool_call": "SELECT (workspace_id, due_at, queue, held_back)",
    "turn": "SELECT (workspace_id, due_at)",
}
"""For tables to which `assent_definer` has a policy already."""

PASSED = """(
    expires_at <= moment AND expires_at + (
        SELECT coalesce(sum(coalesce(ended_at, moment) - greatest(started_at, deadline_from)), interval '0')
        FROM halt WHERE halt.workspace_id = approval.workspace_id AND (ended_at IS NULL OR ended_at > deadline_from)
    ) <= moment
)"""
"""As `models.workspace.halt.passed_sql`, for approvals of all workspaces."""

WAITING = f"""
    SELECT approval.kind, approval.created_at, {PASSED} AS overdue FROM approval
    WHERE approval.status = 'pending' AND approval.workspace_id
"""

READ = f"""
    RETURNS TABLE (name text, labels jsonb, value double precision)
    LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        moment timestamptz := assent_now();
        own text[];
        last text;
        share integer;
        halted text[];
    BEGIN
        IF NOT EXISTS (
            SELECT FROM api_key WHERE secret_sha256 = secret_digest AND 'metrics' = ANY (scopes)
            AND revoked_at IS NULL AND disabled_at IS NULL AND (expires_at IS NULL OR expires_at > moment)
        ) THEN
            RETURN;
        END IF;
        own := ARRAY(SELECT id::text FROM workspace ORDER BY id LIMIT most_workspaces);
        last := own[cardinality(own)];
        share := least(most_rows, 10 * most_rows / greatest(cardinality(own), 1));
        halted := ARRAY(SELECT workspace_id::text FROM halt WHERE ended_at IS NULL);

        RETURN QUERY SELECT name::text, labels, value FROM metric;
        RETURN QUERY SELECT 'assent_audit_unsealed_seconds', '{{}}'::jsonb, greatest(0, extract(epoch FROM moment)::float8 - value)
            FROM metric WHERE name = 'assent_audit_sealed_timestamp_seconds';

        RETURN QUERY WITH waiting AS MATERIALIZED (
            SELECT named.id AS workspace, first.* FROM unnest(own) AS named (id)
            CROSS JOIN LATERAL ({WAITING} = named.id ORDER BY expires_at LIMIT share) first
            UNION ALL
            SELECT 'others', rest.* FROM ({WAITING} > last ORDER BY workspace_id, expires_at LIMIT most_rows) rest
        )
        SELECT 'assent_approvals_pending', jsonb_build_object('workspace', workspace, 'kind', kind), count(*)::float8
            FROM waiting GROUP BY workspace, kind
        UNION ALL
        SELECT each.name, jsonb_build_object('workspace', workspace), each.value FROM (
            SELECT workspace, extract(epoch FROM moment - min(created_at))::float8 AS oldest,
                count(*) FILTER (WHERE overdue) AS overdue, count(*) FILTER (WHERE kind = 'unknown_outcome') AS unknown
            FROM waiting GROUP BY workspace
        ) sums CROSS JOIN LATERAL (VALUES
            ('assent_approval_oldest_seconds', oldest), ('assent_overdue_approvals', overdue), ('assent_unknown_outcomes', unknown)
        ) each (name, value);

        RETURN QUERY SELECT 'assent_held_back_calls', jsonb_build_object('workspace', workspace), count(*)::float8 FROM (
            SELECT CASE WHEN workspace_id <= last THEN workspace_id ELSE 'others' END AS workspace FROM tool_call
            WHERE status = 'queued' AND held_back IS NOT NULL LIMIT most_rows
        ) calls GROUP BY workspace;
        RETURN QUERY SELECT 'assent_audit_alarm', jsonb_build_object('workspace', workspace), sum(alarm)::float8 FROM (
            SELECT CASE WHEN id <= last THEN id ELSE 'others' END AS workspace,
                CASE WHEN coalesce(seal_alarm, seal_stopped) IS NULL THEN 0 ELSE 1 END AS alarm
            FROM workspace
        ) alarms GROUP BY workspace;

        RETURN QUERY WITH RECURSIVE step (line) AS (
            (SELECT queue FROM tool_call WHERE status = 'queued' AND held_back IS NULL AND queue IS NOT NULL ORDER BY queue LIMIT 1)
            UNION ALL
            SELECT (
                SELECT queue FROM tool_call WHERE status = 'queued' AND held_back IS NULL AND queue > step.line
                ORDER BY queue LIMIT 1
            ) FROM step WHERE step.line IS NOT NULL
        ), runnable AS (
            SELECT 'turns' AS queue, first.due_at FROM (
                SELECT due_at FROM turn
                WHERE status = 'queued' AND due_at <= moment AND workspace_id <> ALL (halted) LIMIT most_rows
            ) first
            UNION ALL
            SELECT 'tools', first.due_at FROM (
                SELECT due_at FROM tool_call WHERE status = 'queued' AND held_back IS NULL AND queue IS NULL
                AND due_at <= moment AND workspace_id <> ALL (halted) LIMIT most_rows
            ) first
            UNION ALL
            SELECT step.line, first.due_at FROM step CROSS JOIN LATERAL (
                SELECT due_at FROM tool_call WHERE status = 'queued' AND held_back IS NULL AND queue = step.line
                AND due_at <= moment AND workspace_id <> ALL (halted) LIMIT most_rows
            ) first WHERE step.line IS NOT NULL
            UNION ALL
            SELECT 'deliver', first.due_at FROM (
                SELECT due_at FROM delivery JOIN endpoint ON endpoint.id = endpoint_id
                WHERE status = 'queued' AND due_at <= moment AND (paused_until IS NULL OR paused_until <= moment) LIMIT most_rows
            ) first
            UNION ALL
            SELECT 'deliver', first.due_at FROM (
                SELECT due_at FROM notification WHERE status = 'queued' AND due_at <= moment LIMIT most_rows
            ) first
            UNION ALL
            SELECT 'deliver', first.due_at FROM (SELECT due_at FROM approval_change WHERE due_at <= moment LIMIT most_rows) first
        ), leased AS (
            SELECT 'turns' AS queue FROM turn WHERE status = 'running'
            UNION ALL SELECT coalesce(queue, 'tools') FROM tool_call WHERE status = 'running'
            UNION ALL SELECT 'deliver' FROM delivery WHERE status = 'running'
            UNION ALL SELECT 'deliver' FROM notification WHERE status = 'running'
        ), sums AS (
            SELECT queue, sum(waiting) AS waiting, sum(working) AS working, max(oldest) AS oldest FROM (
                SELECT queue, count(*) AS waiting, 0 AS working, extract(epoch FROM moment - min(due_at)) AS oldest
                    FROM runnable GROUP BY queue
                UNION ALL SELECT queue, 0, count(*), 0 FROM leased GROUP BY queue
                UNION ALL VALUES ('turns', 0, 0, 0), ('tools', 0, 0, 0), ('deliver', 0, 0, 0)
            ) parts GROUP BY queue
        )
        SELECT each.name, jsonb_build_object('queue', queue), each.value::float8 FROM sums CROSS JOIN LATERAL (VALUES
            ('assent_queue_runnable', waiting), ('assent_queue_leased', working), ('assent_queue_oldest_seconds', oldest)
        ) each (name, value);
    END
    $$
"""

FUNCTIONS_OF_THE_APP = {
    # The sums, and what waits now, for a key of the scope `metrics`. Each workspace beyond `most_workspaces` counts as 'others'.
    # Counts at most `most_rows` of a queue or of a workspace's approvals, and ten times as many approvals of all workspaces.
    "assent_read_metrics(secret_digest text, most_workspaces integer, most_rows integer)": READ,
    # A sweep of the beat's schedule succeeded now.
    "assent_sweep_succeeded(sweep text)": """
        RETURNS void AS $$
            INSERT INTO metric SELECT 'assent_sweep_last_success_timestamp_seconds', jsonb_build_object('sweep', sweep),
                extract(epoch FROM assent_now())
            WHERE sweep ~ '^(sweep|tool)[.][a-z_]{1,40}$'
            ON CONFLICT (name, labels) DO UPDATE SET value = greatest(metric.value, excluded.value)
        $$
    """,
    # A task failed to claim a row.
    "assent_claim_failed(task text)": """
        RETURNS void AS $$
            INSERT INTO metric SELECT 'assent_claims_failed_total', jsonb_build_object('task', task), 1
            WHERE task ~ '^(turn|tool|deliver)[.][a-z_]{1,40}$'
            ON CONFLICT (name, labels) DO UPDATE SET value = metric.value + 1
        $$
    """,
}
FUNCTIONS_OF_THE_SWEEPS = {
    # The approvals that were closed after `since` and until `till`, with the way by which each was decided. No content.
    "assent_closed_approvals(since timestamptz, till timestamptz)": """
        RETURNS TABLE (workspace_id text, outcome text, channel text, seconds double precision)
        AS $$
            SELECT act.workspace_id, act.details ->> 'status', CASE
                    WHEN act.details ->> 'via' = 'link' THEN 'link'
                    WHEN act.details ? 'through' THEN split_part(act.details ->> 'through', ':', 1)
                    WHEN act.principal LIKE 'user:%' THEN 'inbox'
                    WHEN act.principal LIKE 'api_key:%' THEN 'api'
                    ELSE split_part(act.principal, ':', 1)
                END, extract(epoch FROM act.at - approval.created_at)::float8
            FROM audit act LEFT JOIN approval ON approval.id = act.subject_id
            WHERE act.at > since AND act.at <= till
                AND act.action IN ('approval.decided', 'approval.expired', 'approval.cancelled')
        $$
    """,
}
"""Functions by signature. They run with the rights of `assent_definer`, in all workspaces. No function returns content."""


def upgrade() -> None:
    for statement in TABLES:
        op.execute(statement)
    give_system("metric", "SELECT, INSERT, UPDATE")
    give_system("turn_usage", f"SELECT ({USAGE})")
    for table, rights in DEFINER_RIGHTS.items():
        give_definer(table, rights)
    for table, rights in MORE_DEFINER_RIGHTS.items():
        op.execute(f"GRANT {rights} ON {table} TO assent_definer")
    create_definer_functions(FUNCTIONS_OF_THE_APP)
    create_definer_functions(FUNCTIONS_OF_THE_SWEEPS, caller="assent_system")
