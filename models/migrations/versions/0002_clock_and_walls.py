"""The clock, and the walls: what each role may do, and the row-level policies that keep workspaces apart.

| role | may |
|---|---|
| assent_owner | own the tables: migrations only |
| assent_app | work in one workspace, the transaction's setting `assent.workspace`; the audit it can only add to |
| assent_system | see ids, statuses and times of all workspaces; renew leases, stamp hints, drop old answers; read no content |
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

APPENDED = ("agent_version", "audit")
CHANGED = ("agent", "api_key", "workspace")
REMOVED = ("answer", "approval", "attempt", "environment", "event", "session", "tool_call", "turn")

SYSTEM_SEES = {
    "workspace": "id, workspace_id, name",
    "api_key": "*",
    "session": "id, workspace_id, status, last_seq",
    "turn": "id, workspace_id, session_id, status, fence, due_at, hinted_at, lease_until",
    "tool_call": "id, workspace_id, session_id, status, fence, due_at, hinted_at, lease_until, cancel_requested_at, held_back",
    "approval": "id, workspace_id, session_id, status, expires_at",
    "answer": "id, expires_at",
}


def upgrade() -> None:
    # A session's row changes eight times a run: it stays small, its agent beside it, and finds room on its page.
    op.execute("ALTER TABLE session ALTER agent SET STORAGE EXTERNAL, SET (fillfactor = 40, toast_tuple_target = 256)")
    for table in ("turn", "tool_call"):
        op.execute(f"ALTER TABLE {table} SET (fillfactor = 70)")
    op.execute("CREATE FUNCTION assent_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()'")
    op.execute("GRANT SELECT ON alembic_version TO assent_app, assent_system")
    for table in (*APPENDED, *CHANGED, *REMOVED):
        more = ", UPDATE, DELETE" if table in REMOVED else ", UPDATE" if table in CHANGED else ""
        op.execute(f"GRANT SELECT, INSERT{more} ON {table} TO assent_app")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY one_workspace ON {table} TO assent_app USING (workspace_id = current_setting('assent.workspace', true))"
        )
    for table, columns in SYSTEM_SEES.items():
        op.execute(f"GRANT SELECT {'' if columns == '*' else f'({columns})'} ON {table} TO assent_system")
        op.execute(f"CREATE POLICY every_workspace ON {table} TO assent_system USING (true)")
    for table in ("turn", "tool_call"):
        op.execute(f"GRANT UPDATE (lease_until, hinted_at) ON {table} TO assent_system")
    op.execute("GRANT DELETE ON answer TO assent_system")
