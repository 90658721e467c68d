"""The least bytes that the facts of one gated cycle need in Postgres: of its log, and on disk while a person thinks.

    make bench ARGS="least_bytes [--cycles 300] [--burst]"

Runs real cycles, then copies the rows of one cycle into tables without any overhead: ids of 16 bytes, hashes of 32, no nulls, no
index but the primary key, no foreign key. A row is inserted in the transaction that created it, in its last form but for the facts
that arose later, such as the decision of an approval. These update the row, in the transaction in which they arose (`LATER`). Two
rows are updated by many transactions: the session's, which is the head of its chain, and the day's sums. No layout with a row per
fact needs fewer bytes.

Prints bytes of WAL per cycle, and bytes on disk per session that waits for a person, of Assent and of these tables, with ratios.
Autovacuum is off meanwhile, since it writes at any time. Instead, a VACUUM follows each tenth of the sessions that are parked, so
that later rows take the room of dead versions, as on a running server: autovacuum comes when a fifth of a table is dead. With
`--burst` all sessions are parked at once, without that.
"""

import argparse
import itertools
import re
import uuid
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import psycopg
from benchmarks.driver import Driver
from benchmarks.house import house, servers
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from models.database.daily_usage import DAYS

ID = re.compile(r"[a-z]+_[0-9A-Z]{26}")
SHA256 = re.compile(r"[0-9a-f]{64}")
KEYS = {
    "session": "id",
    "turn": "id",
    "turn_usage": "turn_id, attempt, request",
    "tool_call": "id",
    "approval": "id",
    "attempt": "tool_call_id, number",
    "thread": "session_id, id",
    "event": "session_id, seq",
    "audit": "chain, seq",
    "audit_text": "chain, seq, name",
    "daily_usage": "workspace_id, day, agent_id, person_id, provider, model",
}
"""The tables of a cycle, and their primary keys."""
ROWS = {
    "session": "SELECT *, created_at AS born FROM session WHERE id = %s",
    "thread": "SELECT *, created_at AS born FROM thread WHERE session_id = %s",
    "turn": "SELECT turn.*, content AS reply, created_at AS born FROM turn LEFT JOIN reply ON turn_id = id WHERE session_id = %s",
    "turn_usage": "SELECT *, at AS born FROM turn_usage WHERE session_id = %s",
    "tool_call": """
        SELECT tool_call.*, input, shown_input, secrets, asking, content AS result, structured, created_at AS born FROM tool_call
        LEFT JOIN call_input ON call_input.tool_call_id = id LEFT JOIN call_result ON call_result.tool_call_id = id
        WHERE session_id = %s
    """,
    "approval": "SELECT *, created_at AS born FROM approval WHERE session_id = %s",
    "attempt": "SELECT *, started_at AS born FROM attempt WHERE session_id = %s",
    "event": "SELECT *, created_at AS born FROM event WHERE session_id = %s",
    "audit": "SELECT *, at AS born FROM audit WHERE chain = %s",
    "audit_text": "SELECT audit_text.*, at AS born FROM audit_text JOIN audit USING (chain, seq) WHERE chain = %s",
}
"""The rows of a session, and when each was inserted. Payloads that Assent keeps in rows of their own are in the row that they
belong to."""
LATER = {
    "turn": {
        "started_at": ("started_at", "worker", "span_id"),
        "ended_at": ("ended_at", "provider", "model", "stop_reason", "reply"),
    },
    "tool_call": {"settled_at": ("settled_at", "is_error", "result", "structured")},
    "approval": {"decided_at": ("decided_at", "decided_by", "decision", "event_id")},
    "attempt": {"ended_at": ("ended_at", "outcome")},
    "event": {"processed_at": ("processed_at", "turn_id")},
}
"""The columns whose values arise after their row: by table, and by the column with the time."""
_SALTS = itertools.count(1)
TYPES = {
    uuid.UUID: "uuid",
    bytes: "bytea",
    Jsonb: "jsonb",
    str: "text",
    bool: "boolean",
    int: "bigint",
    float: "float8",
    Decimal: "numeric",
    date: "date",
    datetime: "timestamptz",
}
HEAD = (
    "UPDATE least.session SET last_seq = last_seq + 1, audit_seq = audit_seq + 1, updated_at = now(), audit_head = %s WHERE id = %s"
)
SIZE = """
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0) AS bytes FROM pg_class
    WHERE relkind = 'r' AND relnamespace = %s::regnamespace
"""

Row = dict[str, Any]
Db = psycopg.Connection[Row]


class Write(NamedTuple):
    """One row's insert, or with `key` its update."""

    table: str
    values: Row
    key: Row | None = None


Transactions = list[list[Write]]


def shrunk(row: Row) -> Row:
    """Return the row without nulls, and its values in their smallest types."""
    return {name: _shrunk(value) for name, value in row.items() if value is not None}


def _shrunk(value: Any) -> Any:
    if isinstance(value, str) and ID.fullmatch(value):
        return uuid.uuid5(uuid.NAMESPACE_OID, value)
    if isinstance(value, str) and SHA256.fullmatch(value):
        return bytes.fromhex(value)
    return Jsonb(value) if isinstance(value, dict | list) else value


def newest_cycle(db: Db) -> Transactions:
    """Return the writes of the newest session, by transaction. The insert of the session's own row comes first."""
    session = db.execute("SELECT id FROM session ORDER BY created_at DESC LIMIT 1").fetchone()
    assert session
    at: dict[datetime, list[Write]] = defaultdict(list)
    for table, statement in ROWS.items():
        for row in db.execute(statement, (session["id"],)):
            born = row.pop("born")
            key = shrunk({name: row[name] for name in KEYS[table].split(", ")})
            for time_column, names in LATER.get(table, {}).items():
                if (time := row[time_column]) and time != born:
                    at[time].append(Write(table, shrunk({name: row.pop(name) for name in names}), key))
            at[born].append(Write(table, shrunk(row)))
    return [at[time] for time in sorted(at)]


def at_rest(transactions: Transactions) -> Transactions:
    """Return one transaction with each row in its last form."""
    rows: dict[tuple[Any, ...], Write] = {}
    for write in (write for writes in transactions for write in writes):
        source = write.key or write.values
        key = (write.table, *(source[name] for name in KEYS[write.table].split(", ")))
        rows[key] = Write(write.table, rows[key].values | write.values) if write.key else write
    return [list(rows.values())]


class Tables:
    """The tables without overhead, in a schema of their own, and the cycle whose copies they hold."""

    def __init__(self, db: Db, transactions: Transactions) -> None:
        self.db, self.transactions = db, transactions
        day = db.execute(f"SELECT * FROM {DAYS} LIMIT 1").fetchone()
        assert day
        self.day = Write("daily_usage", shrunk(day))
        self.sums = [name for name, value in self.day.values.items() if isinstance(value, int | Decimal)]
        self._create()

    def wal(self, cycles: int) -> float:
        """Return the bytes of WAL per cycle, after a hundred cycles that warm the pages."""
        self.write(100)
        before = position(self.db)
        self.write(cycles)
        return (position(self.db) - before) / cycles

    def disk(self, sessions: int) -> float:
        """Return the bytes on disk per session, indexes included, after a hundred sessions that create the files."""
        self.write(100)
        before = size(self.db, "least")
        self.write(sessions)
        return (size(self.db, "least") - before) / sessions

    def write(self, count: int) -> None:
        """Write `count` copies, each with ids of its own, which grow as those of Assent do."""
        for salt in itertools.islice(_SALTS, count):
            for number, writes in enumerate(self.transactions):
                with self.db.transaction():
                    self._write(writes, salt, is_first=not number)

    def _create(self) -> None:
        columns: dict[str, dict[str, str]] = defaultdict(dict)
        for write in (write for writes in [*self.transactions, [self.day]] for write in writes):
            columns[write.table] |= {name: TYPES[type(value)] for name, value in write.values.items()}
        self.db.execute("DROP SCHEMA IF EXISTS least CASCADE; CREATE SCHEMA least")
        for table, types in columns.items():
            described = ", ".join(f"{name} {kind}" for name, kind in types.items())
            is_updated = len(self.transactions) > 1 and (table in LATER or table == "session")
            options = " WITH (fillfactor = 90)" if is_updated or table == "daily_usage" else ""
            self.db.execute(f"CREATE TABLE least.{table} ({described}, PRIMARY KEY ({KEYS[table]})){options}")
        self._send(self.day, 0)

    def _write(self, writes: list[Write], salt: int, *, is_first: bool) -> None:
        session = uuid.UUID(int=next(w.values["id"].int for ws in self.transactions for w in ws if w.table == "session") ^ salt)
        if not is_first:
            self.db.execute("SELECT FROM least.session WHERE id = %s FOR NO KEY UPDATE", (session,))
        for write in sorted(writes, key=lambda write: write.table != "session"):
            self._send(write, salt)
        if not is_first:
            self.db.execute(HEAD, (uuid.uuid4().bytes * 2, session))
        if len(self.transactions) > 1 and any(write.table == "turn_usage" for write in writes):
            self.db.execute(f"UPDATE least.daily_usage SET {', '.join(f'{name} = {name} + 1' for name in self.sums)}")

    def _send(self, write: Write, salt: int) -> None:
        names, values = list(write.values), _salted(write.values, salt)
        if write.key is None:
            marks = ", ".join(["%s"] * len(names))
            self.db.execute(f"INSERT INTO least.{write.table} ({', '.join(names)}) VALUES ({marks})", values)
            return
        changes, condition = ", ".join(f"{name} = %s" for name in names), " AND ".join(f"{name} = %s" for name in write.key)
        self.db.execute(f"UPDATE least.{write.table} SET {changes} WHERE {condition}", values + _salted(write.key, salt))


def _salted(row: Row, salt: int) -> list[Any]:
    return [uuid.UUID(int=value.int ^ salt) if isinstance(value, uuid.UUID) else value for value in row.values()]


def position(db: Db) -> int:
    """Return the position in the WAL, in bytes."""
    row = db.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS at").fetchone()
    assert row
    return int(row["at"])


def size(db: Db, schema: str) -> float:
    """Return the bytes on disk of a schema's tables, indexes included, after a VACUUM."""
    db.execute("VACUUM")
    row = db.execute(SIZE, (schema,)).fetchone()
    assert row
    return float(row["bytes"])


def park(db: Db, driver: Driver, count: int, batches: int) -> None:
    """Park `count` sessions, with a VACUUM after each batch."""
    for batch in range(batches):
        driver.park(count * (batch + 1) // batches - count * batch // batches)
        db.execute("VACUUM")


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cycles", type=int, default=300)
    options.add_argument("--burst", action="store_true", help="park all sessions at once")
    parsed = options.parse_args()
    count = parsed.cycles
    with servers() as on, house(on) as at, psycopg.connect(at.admin_url, autocommit=True, row_factory=dict_row) as db:
        db.execute("ALTER SYSTEM SET autovacuum = off")
        db.execute("SELECT pg_reload_conf()")
        driver = Driver(at)
        driver.cycles(20, 8)
        empty = size(db, "public")
        park(db, driver, count, 1 if parsed.burst else 10)
        disk = (size(db, "public") - empty) / count
        waiting = newest_cycle(db)
        driver.cycles(100, 8)
        before = position(db)
        driver.cycles(count, 8)
        wal = (position(db) - before) / count
        done = newest_cycle(db)
        driver.close()
        least_wal, least_disk = Tables(db, done).wal(count), Tables(db, at_rest(waiting)).disk(10 * count)
    print(f"a cycle of {len(at_rest(done)[0])} rows in {len(done)} transactions")
    print(f"{'':28} {'Assent':>8} {'least':>8} {'ratio':>6}")
    for name, ours, least in (("WAL per cycle", wal, least_wal), ("disk per waiting session", disk, least_disk)):
        print(f"{name:28} {ours:8.0f} {least:8.0f} {ours / least:6.2f}", flush=True)


if __name__ == "__main__":
    main()
