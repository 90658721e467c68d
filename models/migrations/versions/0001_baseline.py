"""The baseline: the tables, the functions, and the rights of each role. Row-level policies separate the workspaces.

| role | rights |
|---|---|
| assent_owner | owns the tables; used only by migrations |
| assent_app | works in one workspace, named by the transaction's setting `assent.workspace`; adds to the audit, never changes it |
| assent_system | for sweeps; reads ids, statuses, times, tools' names of all workspaces; sets `hinted_at`, deletes old rows |
| assent_definer | cannot log in; owns the functions by which `assent_app` reaches rows of all workspaces |
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

from models.database import ids
from models.migrations.rights import create_definer_functions, give_app, give_definer, give_system

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
serves: tuple[str, ...] = ()
"""Revisions of earlier releases that work with the schema after this migration."""

TABLES = Path(__file__).with_suffix(".sql")

APP_RIGHTS = {
    "SELECT, INSERT, UPDATE, DELETE": """
        approval approval_change approval_grant attempt channel delivery endpoint environment event evidence failure link
        notification passkey person_group provider_key removal session sign_in slack_user spend_limit thread tool_call turn
        vote work
    """,
    "SELECT, INSERT, UPDATE": """
        agent api_key call_input daily_usage delegation halt invitation listing member turn_usage workspace
    """,
    "SELECT, INSERT, DELETE": """
        audit_text fold membership slack_reply stored_result
    """,
    "SELECT, INSERT, UPDATE (name)": "person",
    "SELECT, INSERT": """
        agent_version approver_set audit call_result identity reply seal stored_response
    """,
}
"""Tables, by the rights of `assent_app` to the rows of one workspace. A policy hides the rows of all other workspaces."""

OF_SESSIONS = {
    *("approval", "approval_grant", "attempt", "event", "evidence", "fold"),
    *("link", "stored_result", "thread", "tool_call", "turn", "vote", "work"),
}
"""Tables whose rows of a deleted session are hidden until a sweep has removed them."""

SYSTEM_COLUMNS = {
    "approval": "id, workspace_id, session_id, agent_id, tool, kind, status, expires_at, remind_at, deadline_from",
    "approval_change": "id, workspace_id, due_at, hinted_at",
    "approval_grant": "id, workspace_id, session_id, agent_id, tool, created_at, revoked_at, swept_to, swept_at",
    "audit": "chain, seq, workspace_id, at",
    "delivery": "id, workspace_id, endpoint_id, status, due_at, hinted_at, lease_until, ended_at",
    "endpoint": "id, failing_since, paused_until",
    "failure": "task, subject_id, workspace_id, failures, not_before",
    "halt": "id, workspace_id, ended_at, settled_at",
    "link": "id, workspace_id, expires_at",
    "notification": "id, workspace_id, status, due_at, hinted_at, lease_until, ended_at",
    "removal": "subject_id, workspace_id, created_at, emptied_at",
    "stored_response": "id, expires_at",
    "thread": "id, workspace_id, session_id, agent_id",
    "tool_call": "id, workspace_id, session_id, thread_id, turn_id, name, status, due_at, hinted_at, held_back, lease_until, "
    "queue, answer_by, deadline_from",
    "turn": "id, workspace_id, session_id, thread_id, status, due_at, hinted_at, lease_until, ended_at",
    "workspace": "id, workspace_id, name",
}
"""The columns that `assent_system` may read of all workspaces."""

SYSTEM_WRITES = {
    "approval_change": "UPDATE (hinted_at)",
    "delivery": "UPDATE (hinted_at), DELETE",
    "failure": "DELETE",
    "link": "DELETE",
    "notification": "UPDATE (hinted_at), DELETE",
    "stored_response": "DELETE",
    "tool_call": "UPDATE (hinted_at)",
    "turn": "UPDATE (hinted_at)",
}

DEFINER_RIGHTS = {
    "api_key": "SELECT (id, workspace_id, scopes, secret_sha256, environment_id, allowed_cidrs, "
    "makers, expires_at, disabled_at, revoked_at)",
    "identity": "SELECT (workspace_id, issuer, subject, person_id)",
    "invitation": "SELECT (id, workspace_id, secret_sha256)",
    "link": "SELECT (id, workspace_id, token_sha256, code_hmac, tries, used_at)",
    "listing": "SELECT (url), UPDATE (changed_at)",
    "member": "SELECT (workspace_id, person_id, role, source, deactivated_at)",
    "membership": "SELECT (workspace_id, person_id, group_id)",
    "passkey": "SELECT (id, workspace_id, person_id, credential_id)",
    "person": "SELECT (workspace_id, id, email)",
    "session": "SELECT (id, last_seq)",
    "sign_in": "SELECT (id, workspace_id, person_id, method, role_limit, makers, secret_sha256, seen_at, idle_until, expires_at, "
    "ended_at)",
    "tool_call": "SELECT (id, status, fence, lease_until, cancel_requested_at), UPDATE (lease_until)",
    "toolset": "SELECT, INSERT, UPDATE",
    "turn": "SELECT (id, status, fence, lease_until), UPDATE (lease_until)",
}
"""The rights of the functions below. No function returns content. Most find rows only by a value that no stranger knows: a secret's
hash, an unguessable id, or an id with its fence. By an account or e-mail address, they return only ids of people and workspaces."""

HELD = "status = 'running' AND (id, fence) IN (SELECT * FROM unnest(ids, fences))"
GOOD_KEY = "revoked_at IS NULL AND disabled_at IS NULL AND (expires_at IS NULL OR expires_at > assent_now())"

DEFINER_FUNCTIONS = {
    # The API key with this secret, if it is valid now.
    "assent_find_key(secret_digest text)": f"""
        RETURNS TABLE (id text, workspace_id text, scopes text[], environment_id text, allowed_cidrs text[],
            makers text[])
        AS $$
            SELECT id, workspace_id, scopes, environment_id, allowed_cidrs, makers FROM api_key
            WHERE secret_sha256 = secret_digest AND {GOOD_KEY}
        $$
    """,
    # The ids of those API keys that are valid now.
    "assent_good_keys(ids text[])": f"""
        RETURNS SETOF text AS $$ SELECT id FROM api_key WHERE id = ANY (ids) AND {GOOD_KEY} $$
    """,
    # The number of each session's last event. Deleted sessions are left out.
    "assent_session_heads(ids text[])": """
        RETURNS TABLE (id text, last_seq bigint) AS $$ SELECT id, last_seq FROM session WHERE id = ANY (ids) $$
    """,
    # The turns and calls whose lease the caller still holds. `cancelled` is true if somebody asked to cancel the call.
    "assent_held_leases(ids text[], fences bigint[])": f"""
        RETURNS TABLE (id text, cancelled boolean)
        AS $$
            SELECT id, false FROM turn WHERE {HELD}
            UNION ALL SELECT id, cancel_requested_at IS NOT NULL FROM tool_call WHERE {HELD}
        $$
    """,
    # Extend the leases that the caller still holds: they end `duration` from now. Returns the same rows as assent_held_leases.
    "assent_renew_leases(ids text[], fences bigint[], duration interval)": f"""
        RETURNS TABLE (id text, cancelled boolean)
        LANGUAGE plpgsql AS $$
        #variable_conflict use_column
        BEGIN
            RETURN QUERY UPDATE turn SET lease_until = assent_now() + duration WHERE {HELD} RETURNING id::text, false;
            RETURN QUERY UPDATE tool_call SET lease_until = assent_now() + duration WHERE {HELD}
                RETURNING id::text, cancel_requested_at IS NOT NULL;
        END
        $$
    """,
    # Store toolsets: a JSON list of {name, tools, digest, workspaces}. `only_seen` is true if the worker repeats an announcement.
    # A repeated announcement replaces a toolset with another digest only if no worker announced that toolset for `seen_seconds`.
    "assent_announce_toolsets(announced jsonb, only_seen boolean, seen_seconds double precision)": """
        RETURNS void
        AS $$
            INSERT INTO toolset (name, tools, digest, workspaces, announced_at, seen_at)
            SELECT name, tools, digest, workspaces, assent_now(), assent_now()
            FROM jsonb_to_recordset(announced) AS toolsets (name text, tools jsonb, digest text, workspaces text[])
            ORDER BY name
            ON CONFLICT (name) DO UPDATE SET tools = excluded.tools, digest = excluded.digest, workspaces = excluded.workspaces,
                announced_at = excluded.announced_at, seen_at = excluded.seen_at
            WHERE NOT only_seen OR toolset.digest = excluded.digest
                OR toolset.seen_at < assent_now() - make_interval(secs => seen_seconds)
        $$
    """,
    # Mark the listings of the MCP server at this URL as changed. Every workspace then lists the server's tools again.
    "assent_listing_changed(changed_url text)": """
        RETURNS void AS $$ UPDATE listing SET changed_at = assent_now() WHERE url = changed_url $$
    """,
    # The ids of those sessions that no longer exist.
    "assent_gone_sessions(ids text[])": """
        RETURNS SETOF text AS $$ SELECT * FROM unnest(ids) EXCEPT SELECT id FROM session WHERE id = ANY (ids) $$
    """,
    # The sign-in with this secret, if it is open, with the person's current role and groups.
    "assent_find_sign_in(secret_digest text)": """
        RETURNS TABLE (id text, workspace_id text, person_id text, method text, makers text[],
            seen_at timestamptz, role text, role_limit text, source text, group_ids text[])
        AS $$
            SELECT s.id, s.workspace_id, s.person_id, s.method, s.makers, s.seen_at, m.role, s.role_limit, m.source, ARRAY(
                SELECT g.group_id::text FROM membership g WHERE g.workspace_id = s.workspace_id AND g.person_id = s.person_id
            )
            FROM sign_in s JOIN member m ON m.workspace_id = s.workspace_id AND m.person_id = s.person_id
            WHERE s.secret_sha256 = secret_digest AND s.ended_at IS NULL AND m.deactivated_at IS NULL
                AND s.idle_until > assent_now() AND s.expires_at > assent_now()
        $$
    """,
    # The invitation with this secret.
    "assent_find_invitation(secret_digest text)": """
        RETURNS TABLE (id text, workspace_id text)
        AS $$ SELECT id, workspace_id FROM invitation WHERE secret_sha256 = secret_digest $$
    """,
    # The passkey with this credential id, a random value from the authenticator.
    "assent_find_passkey(credential bytea)": """
        RETURNS TABLE (id text, workspace_id text) AS $$ SELECT id, workspace_id FROM passkey WHERE credential_id = credential $$
    """,
    # The person with this account at this issuer in each workspace. The issuer has authenticated the account.
    "assent_find_identity(of_issuer text, of_subject text)": """
        RETURNS TABLE (workspace_id text, person_id text)
        AS $$ SELECT workspace_id, person_id FROM identity WHERE issuer = of_issuer AND subject = of_subject ORDER BY 1 $$
    """,
    # The person with this e-mail address in each workspace.
    "assent_find_person(of_email text)": """
        RETURNS TABLE (workspace_id text, id text)
        AS $$ SELECT workspace_id, id FROM person WHERE email = of_email ORDER BY 1 $$
    """,
    # The link with this token, if nothing has used it up, or if a decision did within the last minute and the code is right.
    "assent_find_link(digest text, code text)": """
        RETURNS TABLE (id text, workspace_id text)
        AS $$
            SELECT id, workspace_id FROM link
            WHERE token_sha256 = digest
                AND (used_at IS NULL OR (tries < 5 AND code_hmac = code AND used_at > assent_now() - interval '1 minute'))
        $$
    """,
}
"""Functions by signature. They run with the rights of `assent_definer`, in all workspaces. Only `assent_app` may call them."""

APPEND_ONLY = ("audit", "seal")


def upgrade() -> None:
    for statement in TABLES.read_text("utf-8").split(";\n"):
        op.execute(statement)
    create_functions()
    add_organization()
    grant_app_rights()
    grant_system_rights()
    for table, rights in DEFINER_RIGHTS.items():
        give_definer(table, rights)
    create_definer_functions(DEFINER_FUNCTIONS)


def create_functions() -> None:
    op.execute("CREATE FUNCTION assent_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()'")
    # Raises an error if a compare-and-swap changed no row. COMMIT can be in the same message: Postgres skips it after the error.
    op.execute("""
        CREATE FUNCTION assent_still(unchanged boolean, otherwise text) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            IF unchanged THEN
                RETURN true;
            END IF;
            RAISE EXCEPTION '%', otherwise USING ERRCODE = 'AS001';
        END
        $$
    """)
    # Refuses to change or delete rows of the audit, even to the owner. No trigger runs for an INSERT.
    op.execute("""
        CREATE FUNCTION assent_only_added_to() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'the audit is only added to: % of % is refused', TG_OP, TG_TABLE_NAME
                USING ERRCODE = 'insufficient_privilege';
        END
        $$
    """)
    for table in APPEND_ONLY:
        op.execute(
            f"CREATE TRIGGER only_added_to BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION assent_only_added_to()"
        )


def add_organization() -> None:
    """Insert the only row. `assent_app` and `assent_system` cannot insert another."""
    organization = sa.table("organization", sa.column("id"), sa.column("created_at"))
    op.execute(organization.insert().values(id=ids.new("org"), created_at=sa.func.clock_timestamp()))


def grant_app_rights() -> None:
    for rights, tables in APP_RIGHTS.items():
        for table in tables.split():
            give_app(table, rights, of_session=table in OF_SESSIONS)
    op.execute("GRANT SELECT ON alembic_version TO assent_app, assent_system")
    # Toolsets belong to the operator. Workers announce them, and allowed workspaces read them.
    condition = "workspaces IS NULL OR current_setting('assent.workspace', true) = ANY (workspaces)"
    give_app("toolset", "SELECT", policy="allowed_workspaces", using=condition)
    # These rows belong to no workspace and no person.
    give_app("organization", "SELECT", policy="everybody", using="true")
    give_app("ceremony", "SELECT, INSERT, DELETE", policy="everybody", using="true")


def grant_system_rights() -> None:
    for table, columns in SYSTEM_COLUMNS.items():
        give_system(table, f"SELECT ({columns})")
    for table, rights in SYSTEM_WRITES.items():
        op.execute(f"GRANT {rights} ON {table} TO assent_system")
