"""Thousands of rows around those of a test, and the pages of Postgres that a query reads among them."""

from collections.abc import Callable, Sequence

import psycopg
import pytest
from benchmarks.copies import copy

from models.database.exchange import Connection, Rows, Statement

Admin = psycopg.Connection[tuple[object, ...]]


def grants_of_others(admin: Admin, session_id: str, count: int, first: int = 1) -> None:
    """Copy a session's grant: `count` into other sessions of its agent, and as many, expired, for all sessions of its agent."""
    of_other = {"id": "'grnt_other' || n", "session_id": "'sesn_other' || n"}
    expired = {"id": "'grnt_old' || n", "scope": "'always'", "session_id": "NULL", "expires_at": "now() - interval '1 day'"}
    for changed in (of_other, expired):
        copy(admin, "approval_grant", f"session_id = '{session_id}'", changed, count, first)


def approvals_of_others(admin: Admin, session_id: str, count: int, first: int = 1) -> None:
    """Copy a session's approval into `count` other sessions, each with a later creation and deadline."""
    names = {column: f"'{prefix}{session_id[-8:]}x' || n" for column, prefix in _PREFIXES.items()}
    later = {column: f"row.{column} + n * interval '1 millisecond'" for column in ("created_at", "expires_at")}
    copy(admin, "approval", f"session_id = '{session_id}'", names | later, count, first)


def calls_of_others(admin: Admin, session_id: str, count: int, first: int = 1) -> None:
    """Copy a session's call into `count` other sessions."""
    names = {column: f"'{prefix}{session_id[-8:]}x' || n" for column, prefix in (("id", "sevt_"), ("session_id", "sesn_"))}
    copy(admin, "tool_call", f"session_id = '{session_id}'", names, count, first)


def sessions_of_others(admin: Admin, session_id: str, count: int, first: int = 1) -> None:
    """Copy a session's row `count` times, with a later creation for each."""
    changed = {"id": f"'sesn_{session_id[-8:]}x' || n", "created_at": "row.created_at + n * interval '1 millisecond'"}
    copy(admin, "session", f"id = '{session_id}'", changed, count, first)


def events_before_the_last(admin: Admin, session_id: str, count: int, first: int = 1) -> None:
    """Copy a message of a session `count` times, before all that it has but its first events."""
    of_session = f"session_id = '{session_id}'"
    admin.execute(f"UPDATE event SET seq = seq + {count} WHERE {of_session} AND seq > 1")
    admin.execute(f"UPDATE session SET last_seq = last_seq + {count} WHERE id = '{session_id}'")
    copy(admin, "event", f"{of_session} AND seq = 1", {"seq": f"n - {first} + 2", "id": "'sevt_x' || n"}, count, first)


def turns_of_a_session(admin: Admin, session_id: str, count: int, first: int = 1) -> None:
    """Copy a session's first turn, which proposed a call that waited for a person, `count` times after its last turn."""
    call_id, turn, later = f"'sevt_{session_id}_' || n", f"'turn_{session_id}_' || n", "+ n * interval '5 seconds'"
    of_session = f"session_id = '{session_id}' AND id !~ '_sesn_'"
    of_call = f"tool_call_id IN (SELECT id FROM tool_call WHERE {of_session})"

    def moved(*columns: str) -> dict[str, str]:
        return {column: f"row.{column} {later}" for column in columns}

    copy(admin, "attempt", of_call, {"tool_call_id": call_id} | moved("started_at", "ended_at"), count, first)
    copy(admin, "call_input", of_call, {"tool_call_id": call_id}, count, first)
    waits = {"id": f"'appr_{session_id}_' || n", "tool_call_id": call_id} | moved("created_at", "decided_at", "expires_at")
    copy(admin, "approval", of_session, waits, count, first)
    copy(admin, "tool_call", of_session, {"id": call_id, "turn_id": turn} | moved("settled_at"), count, first)
    own = f"session_id = '{session_id}'"
    last = f"(SELECT turn_number FROM thread WHERE {own}) + n - {first - 1}"
    copy(
        admin,
        "turn",
        f"{of_session} AND number = 1",
        {"id": turn, "number": last} | moved("created_at", "started_at", "ended_at"),
        count,
        first,
    )
    admin.execute(f"UPDATE thread SET turn_number = turn_number + {count} WHERE {own}")


def acts_of_long_ago(admin: Admin, workspace_id: str, count: int, first: int = 1) -> None:
    """Add `count` acts of as many sessions, of ten days ago."""
    admin.execute(_ACTS, (workspace_id, first, first + count - 1))


_ACTS = """
INSERT INTO audit (chain, seq, workspace_id, at, principal, action, subject_id, details, hash)
SELECT 'sesn_' || g, 1, %s, assent_now() - interval '10 days', 'system:test', 'turn.started', 'turn_' || g, '{}', sha256('x')
FROM generate_series(%s::int, %s::int) g
"""


def acts_of_a_day(admin: Admin, workspace_id: str, count: int, first: int = 1) -> None:
    """Add `count` acts of the last day, one each five seconds: of ten in a session, seven are routine."""
    admin.execute(_ACTS_OF_A_DAY, (workspace_id, first, first + count - 1))


_ACTS_OF_A_DAY = """
INSERT INTO audit (chain, seq, workspace_id, at, principal, action, subject_id, details, hash)
SELECT 'sesn_x' || g / 10, g %% 10 + 1, %s, assent_now() - interval '1 day' + g * interval '5 seconds', 'system:test',
    CASE WHEN g %% 10 < 7 THEN 'turn.started' ELSE 'approval.requested' END, 'appr_x' || g, '{}', sha256('x')
FROM generate_series(%s::int, %s::int) g
"""


_PREFIXES = {"id": "appr_", "session_id": "sesn_", "tool_call_id": "sevt_"}


def sums(admin: Admin, workspace_id: str, count: int, first: int = 1) -> None:
    """Add `count` sums of the present day, of as many people."""
    admin.execute(_SUMS, (workspace_id, first, first + count - 1))


_SUMS = """
INSERT INTO daily_usage
SELECT %s, (assent_now() AT TIME ZONE 'UTC')::date, 'agent_' || g / 20, 'user_' || g, 'anthropic', 'm',
    1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0.01, 0
FROM generate_series(%s::int, %s::int) g
"""


def pages(query: Callable[[], object]) -> int:
    """Return how many pages the SELECTs of a query read. Each of them runs twice: the second time under EXPLAIN."""
    query()
    count, exchange = 0, Connection.exchange

    def counting(connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
        nonlocal count
        rows = exchange(connection, statements)
        selects = [each for each in statements if each.sql.lstrip().startswith("SELECT")] if connection.in_transaction else []
        for each in selects:
            [[([plan],)]] = exchange(connection, [Statement(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {each.sql}", each.values)])
            count += plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "exchange", counting)
        query()
    return count
