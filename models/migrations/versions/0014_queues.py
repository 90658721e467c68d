"""`assent_read_queues` counts what waits in each queue: for the role `assent_scaler`, and for `assent_read_metrics`."""

from alembic import op

from models.migrations.rights import create_definer_functions

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(13, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

QUEUES = """
    RETURNS TABLE (queue text, runnable double precision, leased double precision, oldest_seconds double precision)
    LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        moment timestamptz := assent_now();
        halted text[] := ARRAY(SELECT workspace_id::text FROM halt WHERE ended_at IS NULL);
    BEGIN
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
        SELECT queue::text, waiting::float8, working::float8, oldest::float8 FROM sums;
    END
    $$
"""
"""Due rows that wait for a worker, rows on which a worker works, and how long the first has waited. At most `most_rows` wait."""

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

        RETURN QUERY SELECT each.name, jsonb_build_object('queue', queues.queue), each.value
        FROM assent_read_queues(most_rows) queues CROSS JOIN LATERAL (VALUES
            ('assent_queue_runnable', runnable), ('assent_queue_leased', leased), ('assent_queue_oldest_seconds', oldest_seconds)
        ) each (name, value);
    END
    $$
"""
"""As in migration 0004, with the figures of queues from `assent_read_queues`."""

SCALER = "SELECT FROM pg_roles WHERE rolname = 'assent_scaler'"
"""An older installation has no such role: `deploy/roles.sql` creates it, and then grants it the function."""


def upgrade() -> None:
    has_scaler = op.get_bind().exec_driver_sql(SCALER).first() is not None
    caller = "assent_scaler" if has_scaler else "assent_definer"
    create_definer_functions({"assent_read_queues(most_rows integer)": QUEUES}, caller=caller)
    metrics = "assent_read_metrics(secret_digest text, most_workspaces integer, most_rows integer)"
    op.execute(f"CREATE OR REPLACE FUNCTION {metrics} {READ} SECURITY DEFINER SET search_path = public, pg_temp")
