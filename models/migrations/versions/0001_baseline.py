"""The baseline: every table, the clock, and the walls between workspaces and between roles. Later migrations append to it.

| role | rights |
|---|---|
| assent_owner | owns the tables; runs migrations only |
| assent_app | works in one workspace, named by the transaction's setting `assent.workspace`; may only add to the audit |
| assent_system | sees ids, statuses and times of all workspaces; stamps hints, drops old answers; reads no content; sweeps only |
| assent_definer | cannot log in; owns the functions by which `assent_app` does the few things that go over all workspaces |
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.rights import create_definer_functions, give_app, give_definer, give_system

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STRING = sa.String()
INTEGER = sa.Integer()
BIG = sa.BigInteger()
BOOLEAN = sa.Boolean()
FLOAT = sa.Float()
BYTES = sa.LargeBinary()
TIME = sa.DateTime(timezone=True)
JSON = postgresql.JSONB()
STRINGS = postgresql.ARRAY(sa.Text())

READ = "SELECT"
ADD = "SELECT, INSERT"
ERASE = "SELECT, INSERT, DELETE"
CHANGE = "SELECT, INSERT, UPDATE"
ALL = "SELECT, INSERT, UPDATE, DELETE"

APP_RIGHTS = {
    "agent": CHANGE,
    "agent_version": ADD,
    "answer": ALL,
    "api_key": CHANGE,
    "approval": ALL,
    "approval_grant": ALL,
    "attempt": ALL,
    "audit": ADD,
    "audit_text": ERASE,
    "call_input": CHANGE,
    "call_result": ADD,
    "environment": ALL,
    "event": ALL,
    "listing": ALL,
    "reply": ADD,
    "seal": ADD,
    "sealed": CHANGE,
    "session": ALL,
    "stored_result": ALL,
    "sweep_failure": ALL,
    "tool_call": ALL,
    "turn": ALL,
    "work": ALL,
    "workspace": CHANGE,
}
"""What `assent_app` may do with the rows of one workspace. A policy on each of these tables hides all other workspaces."""

SYSTEM_COLUMNS = {
    "answer": "id, expires_at",
    "approval": "id, workspace_id, session_id, agent_id, tool, kind, status, expires_at, remind_at",
    "approval_grant": "id, workspace_id, session_id, agent_id, tool, created_at, revoked_at, swept_to, swept_at",
    "audit": "chain, seq, workspace_id, at",
    "sealed": "chain, seq, workspace_id",
    "session": "id, workspace_id, audit_seq",
    "sweep_failure": "sweep, subject_id, workspace_id, failures, not_before",
    "tool_call": "id, workspace_id, session_id, status, due_at, hinted_at, lease_until, queue, answer_by",
    "turn": "id, workspace_id, session_id, status, due_at, hinted_at, lease_until, ended_at",
    "workspace": "id, workspace_id, name, audit_seq",
}
"""The columns that `assent_system` may read of all workspaces."""

SYSTEM_WRITES = {
    "answer": "DELETE",
    "sweep_failure": "DELETE",
    "tool_call": "UPDATE (hinted_at)",
    "turn": "UPDATE (hinted_at)",
}

DEFINER_RIGHTS = {
    "answer": "SELECT (id, slip), DELETE",
    "api_key": "SELECT (id, workspace_id, scopes, secret_sha256, environment_id, allowed_cidrs, "
    "expires_at, disabled_at, revoked_at)",
    "listing": "SELECT (url), UPDATE (changed_at)",
    "session": "SELECT (id, last_seq)",
    "tool_call": "SELECT (id, status, fence, lease_until, cancel_requested_at), UPDATE (lease_until)",
    "toolset": "SELECT, INSERT, UPDATE",
    "turn": "SELECT (id, status, fence, lease_until), UPDATE (lease_until)",
}
"""What the functions below may do. Each function finds rows only by something that no stranger knows: a secret's hash, an
unguessable id, or an id with its fence. None of them returns content."""

HELD = "status = 'running' AND (id, fence) IN (SELECT * FROM unnest(ids, fences))"
GOOD_KEY = "revoked_at IS NULL AND disabled_at IS NULL AND (expires_at IS NULL OR expires_at > assent_now())"

DEFINER_FUNCTIONS = {
    # The key with this secret, if it opens anything now.
    "assent_find_key(secret_digest text)": f"""
        RETURNS TABLE (id text, workspace_id text, scopes text[], environment_id text, allowed_cidrs text[])
        AS $$
            SELECT id, workspace_id, scopes, environment_id, allowed_cidrs FROM api_key
            WHERE secret_sha256 = secret_digest AND {GOOD_KEY}
        $$
    """,
    # Those of the keys that still open something.
    "assent_good_keys(ids text[])": f"""
        RETURNS SETOF text AS $$ SELECT id FROM api_key WHERE id = ANY (ids) AND {GOOD_KEY} $$
    """,
    # How many events each of the sessions has. Deleted sessions are missing.
    "assent_session_heads(ids text[])": """
        RETURNS TABLE (id text, last_seq bigint) AS $$ SELECT id, last_seq FROM session WHERE id = ANY (ids) $$
    """,
    # The rows whose lease the caller still holds, and whether the run was cancelled.
    "assent_held_leases(ids text[], fences bigint[])": f"""
        RETURNS TABLE (id text, cancelled boolean)
        AS $$
            SELECT id, false FROM turn WHERE {HELD}
            UNION ALL SELECT id, cancel_requested_at IS NOT NULL FROM tool_call WHERE {HELD}
        $$
    """,
    # The same, and their leases last for `duration` from now.
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
    # Store toolsets: a JSON list of {name, tools, digest, workspaces}. With `only_seen` the worker announced the same before: a
    # toolset that another live worker has announced differently since then stays.
    "assent_announce_toolsets(announced jsonb, only_seen boolean, seen_seconds double precision)": """
        RETURNS void
        AS $$
            INSERT INTO toolset (name, tools, digest, workspaces, announced_at, seen_at)
            SELECT name, tools, digest, workspaces, assent_now(), assent_now()
            FROM jsonb_to_recordset(announced) AS given (name text, tools jsonb, digest text, workspaces text[])
            ORDER BY name
            ON CONFLICT (name) DO UPDATE SET tools = excluded.tools, digest = excluded.digest, workspaces = excluded.workspaces,
                announced_at = excluded.announced_at, seen_at = excluded.seen_at
            WHERE NOT only_seen OR toolset.digest = excluded.digest
                OR toolset.seen_at < assent_now() - make_interval(secs => seen_seconds)
        $$
    """,
    # The MCP server at this URL says that its tools changed: every workspace asks for them again.
    "assent_listing_changed(changed_url text)": """
        RETURNS void AS $$ UPDATE listing SET changed_at = assent_now() WHERE url = changed_url $$
    """,
    # Those of the ids that are no session's any more.
    "assent_gone_sessions(ids text[])": """
        RETURNS SETOF text AS $$ SELECT * FROM unnest(ids) EXCEPT SELECT id FROM session WHERE id = ANY (ids) $$
    """,
    # Answers that reached their clients. Those with an idempotency key stay.
    "assent_forget_answers(ids text[])": """
        RETURNS void AS $$ DELETE FROM answer WHERE id = ANY (ids) AND slip IS NOT NULL $$
    """,
}
"""By signature. They run as `assent_definer`, which sees all workspaces; only `assent_app` may call them."""

APPEND_ONLY = ("audit", "seal")


def upgrade() -> None:
    create_tables()
    create_audit_tables()
    create_functions()
    grant_app_rights()
    grant_system_rights()
    give_definer_rights()
    create_definer_functions(DEFINER_FUNCTIONS)


def create_functions() -> None:
    op.execute("CREATE FUNCTION assent_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()'")
    # A compare-and-swap fails in the database, so that COMMIT can be sent in the same message.
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
    # Nobody changes the audit, the owner included. A statement trigger costs an insert nothing.
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


def grant_app_rights() -> None:
    for table, rights in APP_RIGHTS.items():
        give_app(table, rights)
    op.execute("GRANT SELECT ON alembic_version TO assent_app, assent_system")
    # Toolsets are the operator's: workers announce them, and the workspaces that may use them read them.
    allowed = "workspaces IS NULL OR current_setting('assent.workspace', true) = ANY (workspaces)"
    give_app("toolset", "SELECT", policy="allowed_workspaces", using=allowed)


def grant_system_rights() -> None:
    for table, columns in SYSTEM_COLUMNS.items():
        give_system(table, f"SELECT ({columns})")
    for table, rights in SYSTEM_WRITES.items():
        op.execute(f"GRANT {rights} ON {table} TO assent_system")


def give_definer_rights() -> None:
    for table, rights in DEFINER_RIGHTS.items():
        give_definer(table, rights)


def create_audit_tables() -> None:
    op.create_table(
        "audit",
        sa.Column("chain", STRING, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("principal", STRING, nullable=False),
        sa.Column("address", STRING),
        sa.Column("action", STRING, nullable=False),
        sa.Column("subject_id", STRING, nullable=False),
        sa.Column("details", JSON, nullable=False),
        sa.Column("hash", STRING, nullable=False),
        sa.PrimaryKeyConstraint("chain", "seq"),
    )
    op.create_index(
        "audit_at", "audit", ["at"], postgresql_with={"pages_per_range": "16", "autosummarize": "true"}, postgresql_using="brin"
    )
    op.create_table(
        "audit_text",
        sa.Column("chain", STRING, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("salt", STRING, nullable=False),
        sa.Column("text", STRING, nullable=False),
        sa.PrimaryKeyConstraint("chain", "seq", "name"),
    )
    op.create_table(
        "seal",
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("key_id", STRING, nullable=False),
        sa.Column("signature", STRING, nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "seq"),
    )
    op.create_table(
        "sealed",
        sa.Column("chain", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.PrimaryKeyConstraint("chain"),
    )


def create_tables() -> None:
    op.create_table(
        "answer",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("body_sha256", STRING, nullable=False),
        sa.Column("status", INTEGER, nullable=False),
        sa.Column("text", STRING, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("slip", STRING),
        sa.Column("offered_at", TIME),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("answer_expiry", "answer", ["expires_at"])
    op.create_index("answer_without_key", "answer", ["slip"], postgresql_where=sa.text("slip IS NOT NULL"))
    op.create_table(
        "sweep_failure",
        sa.Column("sweep", STRING, nullable=False),
        sa.Column("subject_id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("failures", INTEGER, nullable=False),
        sa.Column("not_before", TIME, nullable=False),
        sa.PrimaryKeyConstraint("sweep", "subject_id"),
    )
    op.create_table(
        "toolset",
        sa.Column("name", STRING, nullable=False),
        sa.Column("tools", JSON, nullable=False),
        sa.Column("digest", STRING, nullable=False),
        sa.Column("workspaces", STRINGS),
        sa.Column("announced_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "workspace",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("audit_seq", BIG, nullable=False),
        sa.Column("audit_head", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("policy", JSON),
        sa.Column("approval", JSON),
        sa.Column("seal_alarm", STRING),
        sa.CheckConstraint("workspace_id = id", name="workspace_is_its_own"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "agent",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("version", INTEGER, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("archived_at", TIME),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("agent_newest", "agent", ["workspace_id", "created_at", "id"])
    op.create_table(
        "api_key",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("scopes", STRINGS, nullable=False),
        sa.Column("secret_sha256", STRING, nullable=False),
        sa.Column("hint", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("last_used_at", TIME),
        sa.Column("disabled_at", TIME),
        sa.Column("revoked_at", TIME),
        sa.Column("environment_id", STRING),
        sa.Column("allowed_cidrs", STRINGS),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("secret_sha256"),
    )
    op.create_table(
        "environment",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("description", STRING),
        sa.Column("config", JSON, nullable=False),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("built_in", BOOLEAN, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("archived_at", TIME),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("environment_newest", "environment", ["workspace_id", "created_at", "id"])
    op.create_table(
        "listing",
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("url", STRING, nullable=False),
        sa.Column("tools", JSON, nullable=False),
        sa.Column("digest", STRING, nullable=False),
        sa.Column("listed_at", TIME, nullable=False),
        sa.Column("changed_at", TIME),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("workspace_id", "url"),
    )
    op.create_index("listing_of_url", "listing", ["url"])
    op.create_table(
        "agent_version",
        sa.Column("agent_id", STRING, nullable=False),
        sa.Column("version", INTEGER, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("body", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"]),
        sa.PrimaryKeyConstraint("agent_id", "version"),
    )
    op.create_table(
        "session",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("agent_id", STRING, nullable=False),
        sa.Column("environment_id", STRING, nullable=False),
        sa.Column("title", STRING),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("max_turns", INTEGER, nullable=False),
        sa.Column("chat_approvals", BOOLEAN, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("archived_at", TIME),
        sa.Column("self_hosted", BOOLEAN, server_default=sa.false(), nullable=False),
        sa.Column("agent_version", INTEGER, nullable=False),
        sa.Column("overrides", JSON),
        sa.Column("long_results", BOOLEAN, server_default=sa.false(), nullable=False),
        sa.Column("git_written", BOOLEAN, server_default=sa.false(), nullable=False),
        sa.Column("usage", JSON, nullable=False),
        sa.Column("stop_reason", JSON),
        sa.Column("turn_id", STRING),
        sa.Column("turn_number", INTEGER, nullable=False),
        sa.Column("turn_count", INTEGER, nullable=False),
        sa.Column("storage_id", STRING),
        sa.Column("unread", INTEGER, nullable=False),
        sa.Column("status", STRING, nullable=False),
        sa.Column("last_seq", BIG, nullable=False),
        sa.Column("stream_positions", JSON, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("audit_seq", BIG, nullable=False),
        sa.Column("audit_head", STRING, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"]),
        sa.ForeignKeyConstraint(["environment_id"], ["environment.id"]),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
        postgresql_with={"fillfactor": "90"},
    )
    op.create_index("session_newest", "session", ["workspace_id", "created_at", "id"])
    op.create_table(
        "approval_grant",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("scope", STRING, nullable=False),
        sa.Column("agent_id", STRING, nullable=False),
        sa.Column("session_id", STRING),
        sa.Column("approval_id", STRING, nullable=False),
        sa.Column("tool", STRING, nullable=False),
        sa.Column("identity", STRING, nullable=False),
        sa.Column("match", JSON, nullable=False),
        sa.Column("covers", STRING, nullable=False),
        sa.Column("given_by", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("max_uses", INTEGER),
        sa.Column("uses", INTEGER, nullable=False),
        sa.Column("revoked_at", TIME),
        sa.Column("revoked_by", STRING),
        sa.Column("swept_to", STRING),
        sa.Column("swept_at", TIME),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"]),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("grant_newest", "approval_grant", ["workspace_id", "created_at", "id"])
    op.create_index("grant_of_agent", "approval_grant", ["agent_id"], postgresql_where=sa.text("revoked_at IS NULL"))
    op.create_index("grant_of_session", "approval_grant", ["session_id"], postgresql_where=sa.text("session_id IS NOT NULL"))
    op.create_index(
        "grant_unswept", "approval_grant", ["created_at"], postgresql_where=sa.text("revoked_at IS NULL AND swept_at IS NULL")
    )
    op.create_table(
        "event",
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("type", STRING, nullable=False),
        sa.Column("body", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("processed_at", TIME),
        sa.Column("turn_id", STRING),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.PrimaryKeyConstraint("session_id", "seq"),
    )
    op.create_index("event_prompt", "event", ["session_id", "seq"], postgresql_where=sa.text("turn_id IS NOT NULL"))
    op.create_index("event_queue", "event", ["session_id", "seq"], postgresql_where=sa.text("processed_at IS NULL"))
    op.create_table(
        "turn",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("count", INTEGER, nullable=False),
        sa.Column("losses", INTEGER, nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("hinted_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("span_id", STRING),
        sa.Column("worker", STRING),
        sa.Column("started_at", TIME),
        sa.Column("attempt", INTEGER, nullable=False),
        sa.Column("fence", BIG, nullable=False),
        sa.Column("lease_until", TIME),
        sa.Column("status", STRING, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("stop_reason", STRING),
        sa.Column("usage", JSON),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("session_id", "number"),
        postgresql_with={"fillfactor": "90"},
    )
    op.create_index("turn_live", "turn", ["due_at"], postgresql_where=sa.text("ended_at IS NULL"))
    op.create_table(
        "reply",
        sa.Column("turn_id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("content", JSON, nullable=False),
        sa.ForeignKeyConstraint(["turn_id"], ["turn.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("turn_id"),
    )
    op.create_table(
        "work",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("environment_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("status", STRING, nullable=False),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("worker", STRING),
        sa.Column("lease_until", TIME),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("offered_at", TIME),
        sa.Column("acknowledged_at", TIME),
        sa.Column("started_at", TIME),
        sa.Column("heartbeat_at", TIME),
        sa.Column("stop_requested_at", TIME),
        sa.Column("stopped_at", TIME),
        sa.ForeignKeyConstraint(["environment_id"], ["environment.id"]),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("work_newest", "work", ["environment_id", "created_at", "id"])
    op.create_index("work_of_session", "work", ["session_id"])
    op.create_index("work_one_at_a_time", "work", ["session_id"], unique=True, postgresql_where=sa.text("status <> 'stopped'"))
    op.create_index("work_waiting", "work", ["environment_id", "due_at"], postgresql_where=sa.text("status <> 'stopped'"))
    op.create_table(
        "tool_call",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("turn_id", STRING, nullable=False),
        sa.Column("position", INTEGER, nullable=False),
        sa.Column("provider_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("input_sha256", STRING, nullable=False),
        sa.Column("permission", STRING, nullable=False),
        sa.Column("rule", STRING, nullable=False),
        sa.Column("idempotent", BOOLEAN, nullable=False),
        sa.Column("announced", BOOLEAN, nullable=False),
        sa.Column("status", STRING, nullable=False),
        sa.Column("fence", BIG, nullable=False),
        sa.Column("attempt", INTEGER, nullable=False),
        sa.Column("lease_until", TIME),
        sa.Column("worker", STRING),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("hinted_at", TIME),
        sa.Column("held_back", STRING),
        sa.Column("cancel_requested_at", TIME),
        sa.Column("is_error", BOOLEAN),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("settled_at", TIME),
        sa.Column("grants", STRINGS),
        sa.Column("server", STRING),
        sa.Column("address", STRING),
        sa.Column("tool", STRING),
        sa.Column("queue", STRING),
        sa.Column("cached_from", STRING),
        sa.Column("cache", JSON),
        sa.Column("workdir", BOOLEAN, server_default=sa.true(), nullable=False),
        sa.Column("answer_seconds", FLOAT),
        sa.Column("answer_by", TIME),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.ForeignKeyConstraint(["turn_id"], ["turn.id"]),
        sa.PrimaryKeyConstraint("id"),
        postgresql_with={"fillfactor": "90"},
    )
    op.create_index(
        "tool_call_cached",
        "tool_call",
        ["workspace_id", "input_sha256", "settled_at"],
        postgresql_where=sa.text("cache IS NOT NULL AND status = 'done'"),
    )
    op.create_index("tool_call_leased", "tool_call", ["lease_until"], postgresql_where=sa.text("status = 'running'"))
    op.create_index("tool_call_of_session", "tool_call", ["session_id", "turn_id", "position"])
    op.create_index("tool_call_queued", "tool_call", ["queue", "due_at"], postgresql_where=sa.text("status = 'queued'"))
    op.create_index(
        "tool_call_with_client",
        "tool_call",
        ["answer_by"],
        postgresql_where=sa.text("status = 'with_client' AND answer_by IS NOT NULL"),
    )
    op.create_table(
        "call_input",
        sa.Column("tool_call_id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("input", JSON, nullable=False),
        sa.Column("proposed_input", JSON),
        sa.Column("shown_input", JSON),
        sa.Column("secrets", JSON),
        sa.Column("asking", JSON),
        sa.Column("question", JSON),
        sa.Column("answers", JSON),
        sa.ForeignKeyConstraint(["tool_call_id"], ["tool_call.id"], ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
        sa.PrimaryKeyConstraint("tool_call_id"),
    )
    op.create_table(
        "call_result",
        sa.Column("tool_call_id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("content", JSON, nullable=False),
        sa.Column("structured", JSON),
        sa.ForeignKeyConstraint(["tool_call_id"], ["tool_call.id"], ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
        sa.PrimaryKeyConstraint("tool_call_id"),
    )
    op.create_table(
        "approval",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("tool_call_id", STRING, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("tool", STRING, nullable=False),
        sa.Column("prompt", STRING, nullable=False),
        sa.Column("input", STRING, nullable=False),
        sa.Column("input_sha256", STRING, nullable=False),
        sa.Column("rule", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("agent_id", STRING),
        sa.Column("input_schema", JSON),
        sa.Column("on_timeout", STRING, server_default="deny", nullable=False),
        sa.Column("remind_at", TIME),
        sa.Column("reminded_at", TIME),
        sa.Column("annotations", JSON),
        sa.Column("questions", JSON),
        sa.Column("leads_to", JSON),
        sa.Column("attempt_told", JSON),
        sa.Column("decision", JSON),
        sa.Column("decided_by", STRING),
        sa.Column("decided_at", TIME),
        sa.Column("decided_input", STRING),
        sa.Column("decided_shown", JSON),
        sa.Column("decided_sha256", STRING),
        sa.Column("event_id", STRING),
        sa.Column("status", STRING, nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.ForeignKeyConstraint(["tool_call_id"], ["tool_call.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("approval_due", "approval", ["expires_at"], postgresql_where=sa.text("status = 'pending'"))
    op.create_index("approval_inbox", "approval", ["workspace_id", "created_at", "id"])
    op.create_index("approval_of_call", "approval", ["tool_call_id"])
    op.create_index("approval_of_session", "approval", ["session_id"], postgresql_where=sa.text("status = 'pending'"))
    op.create_index(
        "approval_to_remind", "approval", ["remind_at"], postgresql_where=sa.text("status = 'pending' AND remind_at IS NOT NULL")
    )
    op.create_index(
        "approval_waiting_of_agent",
        "approval",
        ["agent_id", "tool"],
        postgresql_where=sa.text("status = 'pending' AND kind = 'tool_call'"),
    )
    op.create_table(
        "attempt",
        sa.Column("tool_call_id", STRING, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("worker", STRING, nullable=False),
        sa.Column("input_sha256", STRING, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("outcome", STRING),
        sa.Column("output", sa.Text()),
        sa.Column("late_result", JSON),
        sa.ForeignKeyConstraint(["tool_call_id"], ["tool_call.id"]),
        sa.PrimaryKeyConstraint("tool_call_id", "number"),
    )
    op.create_table(
        "stored_result",
        sa.Column("tool_call_id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("session_id", STRING, nullable=False),
        sa.Column("content", BYTES, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"]),
        sa.ForeignKeyConstraint(["tool_call_id"], ["tool_call.id"]),
        sa.PrimaryKeyConstraint("tool_call_id"),
    )
    op.create_index("ix_stored_result_session_id", "stored_result", ["session_id"])
