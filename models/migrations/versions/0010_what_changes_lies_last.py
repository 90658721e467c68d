"""What changes at every step of a session lies together, last in its row; and a turn's claim touches no index.

Of an update Postgres logs the bytes from the first to the last that changed, and an entry in each index if one of them is on a
column, or has a condition on a column, that changed. Turns are found while they have not ended, which a claim does not change.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

LAST = {
    "session": {
        "usage": "",
        "stop_reason": "",
        "turn_id": "",
        "turn_number": "",
        "turn_count": "",
        "storage_id": "",
        "unread": "",
        "status": "SELECT",
        "last_seq": "SELECT",
        "updated_at": "",
        "audit_seq": "SELECT",
        "audit_head": "",
    },
    "turn": {
        "prompt": "",
        "span_id": "",
        "worker": "",
        "started_at": "",
        "attempt": "",
        "fence": "SELECT",
        "lease_until": "SELECT, UPDATE",
        "status": "SELECT",
        "ended_at": "SELECT",
        "stop_reason": "",
        "usage": "",
        "reply": "",
    },
    "approval": {
        "decision": "",
        "decided_by": "",
        "decided_at": "",
        "decided_input": "",
        "decided_sha256": "",
        "event_id": "",
        "status": "SELECT",
    },
}
"""By table: its columns that change, and what `assent_system` may do with each."""


INDEXES = {
    "turn_queued": None,
    "turn_leased": None,
    "turn_live": ("turn", ["due_at"], "ended_at IS NULL"),
    "approval_of_session": ("approval", ["session_id"], "status = 'pending'"),
    "approval_due": ("approval", ["expires_at"], "status = 'pending'"),
    "approval_to_remind": ("approval", ["remind_at"], "status = 'pending' AND remind_at IS NOT NULL"),
    "approval_waiting_of_agent": ("approval", ["agent_id", "tool"], "status = 'pending' AND kind = 'tool_call'"),
}
"""Those that go, and what comes: table, columns, condition."""


def upgrade() -> None:
    for name in INDEXES:
        op.execute(f"DROP INDEX IF EXISTS {name}")  # first, or each row that is written anew is written there too
    for table, columns in LAST.items():
        _move_to_the_end(table, columns)
    for name, index in INDEXES.items():
        if index:
            table, indexed, condition = index
            op.create_index(name, table, indexed, postgresql_where=sa.text(condition))
    # An update finds room on the row's page, which is free again as soon as nobody reads what stood there.
    for table in ("session", "turn", "tool_call"):
        op.execute(f"ALTER TABLE {table} SET (fillfactor = 90)")


def _move_to_the_end(table: str, columns: dict[str, str]) -> None:
    """Write them anew behind the others."""
    kinds = sa.text(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = to_regclass(:table)"
    )
    kind = {name: (type_, needed) for name, type_, needed in op.get_bind().execute(kinds, {"table": table})}

    def alter(*each: str) -> None:
        op.execute(f"ALTER TABLE {table} " + ", ".join(each))

    for name in columns:
        alter(f"RENAME {name} TO old_{name}")
    alter(*(f"ADD {name} {kind[name][0]}" for name in columns))
    op.execute(f"UPDATE {table} SET " + ", ".join(f"{name} = old_{name}" for name in columns))
    alter(*(f"DROP old_{name}" for name in columns), *(f"ALTER {name} SET NOT NULL" for name in columns if kind[name][1]))
    for name, may in columns.items():
        for right in filter(None, may.split(", ")):
            op.execute(f"GRANT {right} ({name}) ON {table} TO assent_system")
