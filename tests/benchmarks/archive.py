"""What an archived session costs: bytes of sessions with one gated call, before and after.

    make bench ARGS="archive [N]"

N sessions (500 by default) run over HTTP: a message, a call that is allowed, a reply. They are archived in the database, and then
the contents of their parts are put into a folder. Prints bytes per session of rows, TOAST and indexes, each after a VACUUM FULL, by
table; bytes of files; and per archived session the CPU ms of this process and of Postgres, and the wall ms of reading its events.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
from benchmarks.copies import Db
from benchmarks.driver import Driver
from benchmarks.house import environment, house, servers
from benchmarks.meters import exact_cpu

from models.database import encryption
from models.database.transactions import transact
from models.operate import archiving
from models.operate.archiving import DueSession
from models.session.archive import contents
from models.session.event.log import EventFilter, events_after
from models.session.row import Session
from models.session.thread.row import own_id
from models.settings import settings

_SIZES = """
    SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
_LATER = "SELECT clock_timestamp() + interval '31 days'"
_DONE = "SELECT id, workspace_id FROM session WHERE status = 'idle' AND last_seq > 5 ORDER BY id"
_EMPTIED = ("event", "reply", "call_input", "call_result", "archive_part", "archive_content")

Sizes = dict[str, int]


def sizes(db: Db) -> Sizes:
    """Return the bytes of each table with its indexes."""
    db.execute("VACUUM FULL")
    rows: list[tuple[str, int]] = db.execute(_SIZES).fetchall()  # type: ignore[assignment]
    return dict(rows)


def archive(sessions: Sequence[DueSession], postgres: int) -> tuple[float, float]:
    """Archive these sessions. Returns the CPU ms of this process and of Postgres per session."""
    mine, theirs = time.process_time(), exact_cpu(postgres)
    for session in sessions:
        while archiving.archive_next(session):
            pass
    mine, theirs = time.process_time() - mine, exact_cpu(postgres) - theirs
    return 1000 * mine / len(sessions), 1000 * theirs / len(sessions)


def reading(sessions: Sequence[DueSession]) -> float:
    """Return the median of the wall ms of reading all events of a session, whose parts no cache has."""
    times = []
    for session in sessions[:100]:
        contents.forget()
        start = time.perf_counter()
        transact(session.workspace_id, lambda db, key=session.id: events_after(db, _all(db.get_one(Session, key)), 0, 1000))
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def _all(session: Session) -> EventFilter:
    return EventFilter(session, own_id(session.id))


def show(name: str, before: Sizes, after: Sizes, count: int) -> None:
    """Print what the tables have grown since `before`, per session."""
    each = {table: (size - before.get(table, 0)) / count for table, size in after.items()}
    parts = "  ".join(f"{table} {each[table]:6.0f}" for table in _EMPTIED)
    print(f"{name:22} {sum(each.values()):7.0f} bytes per session: {parts}", flush=True)


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("count", nargs="?", type=int, default=500, metavar="N")
    count = options.parse_args().count
    with servers() as on, tempfile.TemporaryDirectory() as folder:
        with house(on) as at, psycopg.connect(at.admin_url, autocommit=True) as db:
            empty, postgres = sizes(db), at.pids["postgres"]
            driver = Driver(at)
            driver.cycles(count, 8)
            driver.close()
        private, public = encryption.new_keys()
        os.environ |= environment(on) | {"ASSENT_ARCHIVE_PUBLIC_KEY": public, "ASSENT_ARCHIVE_PRIVATE_KEYS": private}
        settings.cache_clear()
        with psycopg.connect(at.admin_url, autocommit=True) as db:
            db.execute(f"CREATE OR REPLACE FUNCTION assent_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $${_LATER}$$")
            sessions = [DueSession(*row) for row in db.execute(_DONE).fetchall()]
            before = reading(sessions)
            show("rows", empty, sizes(db), len(sessions))
            cpu = archive(sessions, postgres)
            show("archive in rows", empty, sizes(db), len(sessions))
            print(f"CPU ms per session: {cpu[0]:.1f} here, {cpu[1]:.1f} in Postgres")
            print(f"all events of a session: {before:.1f} ms from rows, {reading(sessions):.1f} ms from its part")
            stored = _into_files(db, Path(folder))
            show("archive in files", empty, sizes(db), len(sessions))
            print(f"files: {stored / len(sessions):.0f} bytes per session, {reading(sessions):.1f} ms to read one")


def _into_files(db: Db, folder: Path) -> int:
    """Put the contents of all parts into files. Returns their bytes."""
    os.environ["ASSENT_ARCHIVE_URL"] = str(folder)
    settings.cache_clear()
    part = "archive_part.workspace_id || '/' || session_id, id"
    rows = db.execute(f"SELECT {part}, content FROM archive_part JOIN archive_content ON id = part_id")
    total = 0
    for path, part_id, content in rows.fetchall():
        (folder / str(path)).mkdir(parents=True)
        (folder / str(path) / str(part_id)).write_bytes(bytes(content))  # type: ignore[call-overload]
        total += len(bytes(content))  # type: ignore[call-overload]
    db.execute("DELETE FROM archive_content")
    db.execute("UPDATE archive_part SET stored_in = 'files'")
    return total


if __name__ == "__main__":
    main()
