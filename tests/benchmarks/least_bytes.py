"""What the facts of one gated cycle cost at least in Postgres, however tables are cut: in its log, and while a person thinks.

    python tests/benchmarks/least_bytes.py [--cycles 300]

Runs real cycles, then takes the rows of one and writes them again, as often as told, into tables that have nothing to spare: ids of
16 bytes, hashes of 32, no nulls, no index but the primary key, no foreign key; every row is written once, in its last form, in the
transaction that it was born in. The session's row alone is locked and updated by each transaction, as the head of a chain must be.
Prints bytes of WAL per cycle: as Assent writes them; with a row for each fact in such tables, which is less than any layout with a
row for each fact can cost; and with all facts of a transaction in one row. Then the same tables' bytes on disk for a session that
waits; `parked` has what Assent's own take.
"""

import argparse
import itertools
import re
import uuid
from collections import defaultdict
from datetime import datetime
from typing import Any

import psycopg
from benchmarks.driver import Driver
from benchmarks.house import house, servers
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

ID = re.compile(r"[a-z]+_[0-9A-Z]{26}")
SHA256 = re.compile(r"[0-9a-f]{64}")
KEYS = {
    "session": "id",
    "turn": "id",
    "tool_call": "id",
    "approval": "id",
    "attempt": "tool_call_id, number",
    "event": "session_id, seq",
    "audit": "chain, seq",
    "told": "session_id, seq",
}
"""The tables of a cycle, and their keys; `told` is for all facts of a transaction."""
WHOLE = {
    "turn": "SELECT turn.*, content AS reply FROM turn LEFT JOIN reply ON turn_id = id",
    "tool_call": """
        SELECT tool_call.*, input, shown_input, secrets, asking, content AS result, structured FROM tool_call
        LEFT JOIN call_input ON call_input.tool_call_id = id LEFT JOIN call_result ON call_result.tool_call_id = id
    """,
}
"""Rows whose payload Assent keeps in rows beside them: here they are one."""
FACTS = ("event", "audit")
_SALTS = itertools.count(1)
KINDS = {uuid.UUID: "uuid", bytes: "bytea", Jsonb: "jsonb", str: "text", bool: "boolean", int: "integer", float: "float8"}
HEAD = (
    "UPDATE tight.session SET last_seq = last_seq + 1, audit_seq = audit_seq + 1, updated_at = now(), audit_head = %s WHERE id = %s"
)
SIZE = "SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class WHERE relkind = 'r' AND relnamespace = 'tight'::regnamespace"

Row = dict[str, Any]
Rows = list[tuple[str, Row]]
"""With their tables."""
Db = psycopg.Connection[Row]


def tight(row: Row) -> Row:
    """As small as its types can be, without what is null."""
    return {name: _tight(value) for name, value in row.items() if value is not None}


def _tight(value: Any) -> Any:
    if isinstance(value, str) and ID.fullmatch(value):
        return uuid.uuid5(uuid.NAMESPACE_OID, value)
    if isinstance(value, str) and SHA256.fullmatch(value):
        return bytes.fromhex(value)
    return Jsonb(value) if isinstance(value, dict | list) else value


def cycle(db: Db) -> list[Rows]:
    """The rows of the youngest session, by the transactions that they were born in; its own comes first."""
    session = db.execute("SELECT id FROM session ORDER BY created_at DESC LIMIT 1").fetchone()
    assert session
    born: dict[datetime, Rows] = defaultdict(list)
    for table, of, at in (
        *((table, "session_id", "created_at") for table in ("turn", "tool_call", "approval", "event")),
        *(("attempt", "session_id", "started_at"), ("audit", "chain", "at"), ("session", "id", "created_at")),
    ):
        for row in db.execute(f"{WHOLE.get(table, f'SELECT * FROM {table}')} WHERE {of} = %s", (session["id"],)):
            born[row[at]].append((table, tight(row)))
    transactions = [born[at] for at in sorted(born)]
    transactions[0].sort(key=lambda row: row[0] != "session")
    return transactions


def told(rows: Rows, number: int) -> Rows:
    """The same rows with one for all facts of the transaction."""
    facts = [(table, row) for table, row in rows if table in FACTS]
    more = ("session_id", "chain", "workspace_id", "created_at", "processed_at", "at", "seq", "hash")
    said = [{name: _json(value) for name, value in row.items() if name not in more} for _, row in facts]
    first = facts[0][1]
    whose = {"session_id": first.get("session_id", first.get("chain")), "workspace_id": first["workspace_id"], "seq": number}
    hashed = [row["hash"] for table, row in facts if table == "audit"][-1:] or [bytes(32)]
    packed = whose | {"at": first.get("created_at", first.get("at")), "hash": hashed[0], "facts": Jsonb(said)}
    return [(table, row) for table, row in rows if table not in FACTS] + [("told", packed)]


def packed(transactions: list[Rows]) -> list[Rows]:
    """All of them so."""
    return [told(rows, number) for number, rows in enumerate(transactions, 1)]


def _json(value: Any) -> Any:
    return value.obj if isinstance(value, Jsonb) else str(value) if isinstance(value, uuid.UUID) else value


def measure(db: Db, transactions: list[Rows], cycles: int) -> float:
    """Bytes of WAL per cycle, once the first hundred have warmed the pages."""
    create(db, transactions)
    db.execute("CHECKPOINT")
    write(db, transactions, 100)
    before = _position(db)
    write(db, transactions, cycles)
    return (_position(db) - before) / cycles


def rest(db: Db, transactions: list[Rows], sessions: int) -> float:
    """Bytes on disk per session, indexes included."""
    create(db, transactions)
    write(db, transactions, sessions)
    db.execute("VACUUM")
    row = db.execute(SIZE).fetchone()
    assert row
    return float(row["bytes"]) / sessions


def create(db: Db, transactions: list[Rows]) -> None:
    """The tables, empty, with the columns that these rows have."""
    columns: dict[str, dict[str, str]] = defaultdict(dict)
    for table, row in (row for rows in transactions for row in rows):
        columns[table] |= {name: KINDS.get(type(value), "timestamptz") for name, value in row.items()}
    db.execute("DROP SCHEMA IF EXISTS tight CASCADE; CREATE SCHEMA tight")
    for table, kinds in columns.items():
        said = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        options = "fillfactor = 90, autovacuum_enabled = off" if table == "session" else "autovacuum_enabled = off"
        db.execute(f"CREATE TABLE tight.{table} ({said}, PRIMARY KEY ({KEYS[table]})) WITH ({options})")


def write(db: Db, transactions: list[Rows], count: int) -> None:
    """So many copies, each under ids of its own, which grow as those of Assent do."""
    for salt in itertools.islice(_SALTS, count):
        _write(db, transactions, salt)


def _write(db: Db, transactions: list[Rows], salt: int) -> None:
    session = uuid.UUID(int=transactions[0][0][1]["id"].int ^ salt)
    for number, rows in enumerate(transactions):
        with db.transaction():
            if number:
                db.execute("SELECT FROM tight.session WHERE id = %s FOR NO KEY UPDATE", (session,))
            for table, row in rows:
                values = [uuid.UUID(int=value.int ^ salt) if isinstance(value, uuid.UUID) else value for value in row.values()]
                db.execute(f"INSERT INTO tight.{table} ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", values)
            if number:
                db.execute(HEAD, (uuid.uuid4().bytes * 2, session))


def _position(db: Db) -> int:
    row = db.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS at").fetchone()
    assert row
    return int(row["at"])


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cycles", type=int, default=300)
    asked = options.parse_args()
    with servers() as on, house(on) as at, psycopg.connect(at.admin_url, autocommit=True, row_factory=dict_row) as db:
        driver = Driver(at)
        driver.cycles(200, 8)
        before = _position(db)
        driver.cycles(asked.cycles, 8)
        real = (_position(db) - before) / asked.cycles
        done = cycle(db)
        driver.park(1)
        waiting = cycle(db)
        driver.close()
        layouts = {"the least with a row per fact": list, "a row per transaction": packed}
        logged = {name: measure(db, layout(done), asked.cycles) for name, layout in layouts.items()}
        parked = {name: rest(db, layout(waiting), 10 * asked.cycles) for name, layout in layouts.items()}
    print(f"a cycle of {sum(map(len, done))} rows in {len(done)} transactions: bytes of WAL     of one that waits: bytes on disk")
    print(f"{'as Assent writes them':32} {real:8.0f}")
    for name in layouts:
        print(f"{name:32} {logged[name]:8.0f}           {parked[name]:8.0f}", flush=True)


if __name__ == "__main__":
    main()
