"""Row-level security of every table, for every kind of statement, as the roles of the processes."""

from typing import Any

import psycopg
import pytest
from flask import Flask
from own_database import Cleaner, DatabaseUrls
from psycopg import sql
from psycopg.errors import InsufficientPrivilege
from psycopg.rows import dict_row
from walls.world import ORGANIZATION, TABLES, World

Row = dict[str, Any]
NOT_CONTENT = {
    "workspace": {"name", "seal_alarm", "seal_stopped", "retention"},
    "session": {"updated_at", "created_at", "archive_from", "last_seq", "archived_through"},
    "archive_part": {"due_at", "fault", "created_at", "checked_at", "last_seq", "until"},
    "thread": {"agent_id", "turn_id", "unread", "cap_approval_id", "parent_id"},
    "event": {"seq", "type", "turn_id", "processed_at"},
    "turn": {"due_at", "hinted_at", "lease_until", "ended_at"},
    "tool_call": {"turn_id", "name", "due_at", "hinted_at", "held_back", "lease_until", "queue", "answer_by", "deadline_from"},
    "approval": {"expires_at", "remind_at", "agent_id", "tool", "kind", "deadline_from", "tool_call_id", "created_at"},
    "approval_grant": {"agent_id", "tool", "created_at", "revoked_at", "swept_to", "swept_at"},
    "stored_response": {"expires_at"},
    "delivery": {"endpoint_id", "due_at", "hinted_at", "lease_until", "ended_at"},
    "endpoint": {"failing_since", "paused_until"},
    "notification": {"due_at", "hinted_at", "lease_until", "ended_at"},
    "approval_change": {"due_at", "hinted_at"},
    "halt": {"started_at", "ended_at", "settled_at", "backup_at"},
    "flood": set(),
    "link": {"expires_at"},
    "audit": {"chain", "seq", "at"},
    "failure": {"task", "subject_id", "failures", "since", "not_before", "error"},
    "legal_hold": {"released_at"},
    "audit_anchor": {"seq", "cut_to", "cut_at", "created_at"},
    "removal": {"subject_id", "created_at", "emptied_at"},
    "metric": {"name", "labels", "value"},
    "grant_use": set(),
    "turn_usage": {"provider", "model", "at", "estimated", "cost", "summed"}
    | {"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"},
}
"""The columns, beside ids and statuses, that sweeps read of all workspaces: no input, result, message or decision."""
OPERATORS = {"alembic_version", "toolset"}
"""Tables of the operator, which the app's role only reads: the tools of the workers, and the version of the schema."""
SUMS = {"metric"}
"""Tables of the operator, to which the app's role has no right: a function reads them for a key with the scope `metrics`."""
READ_ONLY = {"daily_asks"}
"""Tables of a workspace that the app's role only reads: a sweep adds up rows of all workspaces."""
ALWAYS = {"id", "workspace_id", "session_id", "thread_id", "status"}
SYSTEM_WRITES = {("turn", "hinted_at"), ("tool_call", "hinted_at"), ("delivery", "hinted_at")}
SYSTEM_WRITES |= {("notification", "hinted_at"), ("approval_change", "hinted_at")}


@pytest.fixture(scope="module")
def theirs(cleaner: Cleaner, app: Flask) -> World:
    """The workspace that must stay invisible. No test here changes a row, so one world is enough."""
    cleaner.clean()
    return World(app)


@pytest.fixture(scope="module")
def ours(theirs: World, app: Flask) -> World:
    """The workspace that tries to see the other one."""
    return World(app)


def connect(url: str, workspace_id: str | None = None) -> "psycopg.Connection[Any]":
    """Connect as a role, in a workspace as `models.database.transactions.transaction` sets it."""
    db = psycopg.connect(url, autocommit=True, row_factory=dict_row)
    if workspace_id is not None:
        db.execute("SELECT set_config('assent.workspace', %s, false)", [workspace_id])
    return db


def run(db: "psycopg.Connection[Any]", text: str, table: str, *values: Any) -> "psycopg.Cursor[Any]":
    """Run a statement with the table's name in place of `{}`."""
    return db.execute(sql.SQL(text).format(sql.Identifier(table)), values)


def a_row(admin: "psycopg.Connection[Any]", world: World, table: str) -> Row:
    """Any row of a workspace, read by the superuser."""
    text = sql.SQL("SELECT * FROM {} WHERE workspace_id = %s LIMIT 1").format(sql.Identifier(table))
    row: Row | None = admin.cursor(row_factory=dict_row).execute(text, [world.workspace_id]).fetchone()
    assert row, f"{table} is empty: have the World insert a row"
    return row


def insert(db: "psycopg.Connection[Any]", table: str, row: Row) -> None:
    """Insert a row."""
    names = sql.SQL(", ").join(map(sql.Identifier, row))
    arrays, texts = (
        {"scopes", "allowed_cidrs", "group_ids", "enabled_events", "speakers", "started_by", "makers", "asks"},
        {"match"},
    )  # all other lists are JSON, and so is the text of `match`
    values = [
        psycopg.types.json.Jsonb(value) if name in texts or (isinstance(value, dict | list) and name not in arrays) else value
        for name, value in row.items()
    ]
    places = sql.SQL(", ").join(sql.Placeholder() * len(row))
    db.execute(sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(table), names, places), values)


def test_every_table_has_a_workspace_row_level_security_and_a_test(database_urls: DatabaseUrls) -> None:
    with connect(database_urls.admin) as db:
        tables = db.execute(
            "SELECT relname, relrowsecurity FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
        ).fetchall()
        with_workspace = {
            r["table_name"]
            for r in db.execute(
                "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'workspace_id'"
            )
        }
    assert {row["relname"] for row in tables} - OPERATORS - SUMS - ORGANIZATION == set(TABLES) == with_workspace
    assert {row["relname"] for row in tables if not row["relrowsecurity"]} == {"alembic_version"}


@pytest.mark.parametrize("table", sorted(OPERATORS))
def test_no_request_can_change_a_table_of_the_operator(database_urls: DatabaseUrls, table: str) -> None:
    with connect(database_urls.app, "wrkspc_1") as db:
        run(db, "SELECT * FROM {}", table)
        for text in ("DELETE FROM {}", "INSERT INTO {} DEFAULT VALUES", "TRUNCATE {}"):
            with pytest.raises(InsufficientPrivilege):
                run(db, text, table)


@pytest.mark.parametrize("table", sorted(SUMS))
def test_no_request_reaches_the_sums_of_all_workspaces(database_urls: DatabaseUrls, table: str) -> None:
    with connect(database_urls.app, "wrkspc_1") as db:
        for text in ("SELECT * FROM {}", "DELETE FROM {}", "INSERT INTO {} DEFAULT VALUES", "TRUNCATE {}"):
            with pytest.raises(InsufficientPrivilege):
                run(db, text, table)


def test_another_workspace_s_rows_cannot_be_read_changed_or_inserted(
    theirs: World, ours: World, admin: "psycopg.Connection[Any]", database_urls: DatabaseUrls, subtests: pytest.Subtests
) -> None:
    before = theirs.rows(admin)
    with (
        connect(database_urls.app, ours.workspace_id) as inside,
        connect(database_urls.app, "") as nowhere,
        connect(database_urls.app) as unset,
    ):
        for table in TABLES:
            with subtests.test(table):
                for db in (inside, nowhere, unset):
                    _is_walled_off(db, table, a_row(admin, theirs, table))
                _shows_only(inside, table, a_row(admin, ours, table), theirs.workspace_id)
    assert theirs.rows(admin) == before


def _is_walled_off(db: "psycopg.Connection[Any]", table: str, row: Row) -> None:
    """Assert that a connection can neither find nor add rows of the workspace of `row`, a row of it."""
    owner = row["workspace_id"]
    for text in ("SELECT * FROM {} WHERE workspace_id = %s", "SELECT * FROM {} WHERE workspace_id = %s FOR UPDATE"):
        _nothing(db, text, table, owner)
    _nothing(db, "UPDATE {} SET workspace_id = workspace_id WHERE workspace_id = %s", table, owner)
    _nothing(db, "DELETE FROM {} WHERE workspace_id = %s", table, owner)
    with pytest.raises(InsufficientPrivilege, match="permission denied" if table in READ_ONLY else "row-level security"):
        insert(db, table, row)
    with pytest.raises(InsufficientPrivilege):
        run(db, "TRUNCATE {} CASCADE", table)


def _shows_only(db: "psycopg.Connection[Any]", table: str, own: Row, other: str) -> None:
    """Assert that a connection sees the rows of its own workspace alone, and cannot give them to the workspace `other`."""
    seen = run(db, "SELECT DISTINCT workspace_id FROM {}", table).fetchall()
    assert seen == [{"workspace_id": own["workspace_id"]}], "its own rows are visible"
    with pytest.raises(InsufficientPrivilege):
        run(db, "UPDATE {} SET workspace_id = %s WHERE workspace_id = %s", table, other, own["workspace_id"])


def _nothing(db: "psycopg.Connection[Any]", text: str, table: str, workspace_id: str) -> None:
    """Assert that a statement finds no row, or is not permitted on this table."""
    try:
        assert run(db, text, table, workspace_id).rowcount == 0, f"{text} on {table} found something"
    except InsufficientPrivilege as refused:
        assert "permission denied" in str(refused)  # noqa: PT017 - most tables permit it, for their own rows


def test_the_sweeps_role_reads_no_content_and_writes_hints_only(
    theirs: World, admin: "psycopg.Connection[Any]", database_urls: DatabaseUrls, subtests: pytest.Subtests
) -> None:
    with connect(database_urls.system) as db:
        for table in TABLES:
            with subtests.test(table):
                row = a_row(admin, theirs, table)
                readable = {column for column in row if _may(db, sql.SQL("SELECT {} FROM {} LIMIT 1"), column, table)}
                writable = {column for column in row if _may(db, sql.SQL("UPDATE {1} SET {0} = {0} WHERE false"), column, table)}
                with pytest.raises(InsufficientPrivilege):
                    insert(db, table, row)
                removable = _may(db, sql.SQL("DELETE FROM {1} WHERE false AND {0} IS NULL"), "workspace_id", table)
                allowed = ALWAYS | NOT_CONTENT[table] if table in NOT_CONTENT else set()
                assert readable <= allowed, f"{readable - allowed} is content"
                assert {(table, column) for column in writable} <= SYSTEM_WRITES
                assert not removable or table in {"delivery", "link", "notification", "failure", "stored_response"}


def _may(db: "psycopg.Connection[Any]", text: sql.SQL, column: str, table: str) -> bool:
    try:
        db.execute(text.format(sql.Identifier(column), sql.Identifier(table)))
    except InsufficientPrivilege:
        return False
    return True
