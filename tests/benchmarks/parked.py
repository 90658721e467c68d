"""What a session costs while it waits for a person: bytes in Postgres, and the CPU of a house in which everybody waits.

    python tests/benchmarks/parked.py [N] [--idle 30]

N sessions (10,000 unless told otherwise) are started through HTTP and left waiting for approval. Prints, by table and for each
session: bytes of the rows' pages, of what is kept beside them (TOAST), and of the indexes, maps of free space included, after a
VACUUM as autovacuum would do it; and how much of that is rows that live: the rest is room that updates left, which later rows
take. From the sum the conversation is taken once, as the turn keeps it: the message and the reply. What is left should be 6 kB
at most. Then, before and with N parked, CPU seconds per minute of each process while nothing happens, of `--idle`
seconds' watching; and what Redis holds per session, which should be nothing.
"""

import argparse
import time

import psycopg
from benchmarks.copies import Db
from benchmarks.driver import Driver
from benchmarks.house import House, Servers, house, servers
from benchmarks.meters import exact_cpu
from redis import Redis

_SIZES = """
SELECT relname, pg_relation_size(oid), coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0), pg_total_relation_size(oid)
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
_CONVERSATION = """
SELECT avg(pg_column_size(event.body) + pg_column_size(reply.content))
FROM session JOIN event ON event.turn_id = session.turn_id JOIN reply ON reply.turn_id = session.turn_id
WHERE session.status = 'waiting'
"""

Sizes = dict[str, tuple[int, int, int, int]]
"""By table: bytes of pages, TOAST, indexes and the rest; of rows that live."""


def sizes(db: Db) -> Sizes:
    """Of every table, now."""
    rows: list[tuple[str, int, int, int]] = db.execute(_SIZES).fetchall()  # type: ignore[assignment]
    return {name: (heap, toast, total - heap - toast, _alive(db, name)) for name, heap, toast, total in rows}


def _alive(db: Db, table: str) -> int:
    row = db.execute(f"SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM {table} t").fetchone()
    assert row
    return int(str(row[0]))


def show(before: Sizes, after: Sizes, count: int, conversation: float) -> None:
    """The table, the largest first."""
    each = {name: [(b - a) / count for a, b in zip(before[name], after[name], strict=True)] for name in after}
    each["all"] = [sum(parts) for parts in zip(*each.values(), strict=True)]
    print("bytes per session   pages   toast  indexes     all  (alive)")
    for name, (pages, toast, rest, alive) in sorted(each.items(), key=lambda item: sum(item[1][:3])):
        if pages + toast + rest >= 1:
            print(f"{name:18} {pages:6.0f}  {toast:6.0f}   {rest:6.0f}  {pages + toast + rest:6.0f}  {alive:6.0f}")
    whole = sum(each["all"][:3])
    print(f"beside its conversation of {conversation:.0f} bytes: {whole - conversation:.0f} (at most 6000)", flush=True)


def idle(at: House, seconds: float) -> dict[str, float]:
    """CPU seconds per minute of each process but the model while nothing is asked."""
    named = {name: pid for name, pid in at.pids.items() if name != "standin"}
    before, began = {name: exact_cpu(pid) for name, pid in named.items()}, time.monotonic()
    time.sleep(seconds)
    return {name: 60 * (exact_cpu(pid) - before[name]) / (time.monotonic() - began) for name, pid in named.items()}


def memory(on: Servers) -> int:
    """Bytes that Redis holds."""
    with Redis.from_url(on.redis_url) as client:
        used: int = client.info("memory")["used_memory"]
    return used


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("count", nargs="?", type=int, default=10_000, metavar="N")
    options.add_argument("--idle", type=float, default=30, metavar="SECONDS")
    asked = options.parse_args()
    with servers() as on, house(on) as at, psycopg.connect(at.admin_url, autocommit=True) as db:
        driver = Driver(at)
        driver.cycles(20, 8)
        db.execute("VACUUM ANALYZE")
        time.sleep(10)  # what the cycles left behind is swept away
        empty, before, held = idle(at, asked.idle), sizes(db), memory(on)
        began = time.monotonic()
        parked = driver.park(asked.count)
        seconds = time.monotonic() - began
        print(f"{len(parked)} sessions parked, {len(parked) / seconds:.0f} per second")
        db.execute("VACUUM ANALYZE")
        row = db.execute(_CONVERSATION).fetchone()
        assert row
        show(before, sizes(db), len(parked), float(str(row[0])))
        time.sleep(10)
        full = idle(at, asked.idle)
        print(f"Redis: {(memory(on) - held) / len(parked):.0f} bytes per session")
        print(f"CPU seconds per minute   nobody parked   {len(parked)} parked")
        for name in full:
            print(f"{name:22} {empty[name]:14.2f} {full[name]:14.2f}")
        print(f"{'all':22} {sum(empty.values()):14.2f} {sum(full.values()):14.2f}", flush=True)
        driver.close()


if __name__ == "__main__":
    main()
