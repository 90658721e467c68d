"""What a session costs while it waits for a person: bytes in Postgres, and the CPU of Assent while all sessions wait.

    make bench ARGS="parked [N] [--idle 30]"

N sessions (10,000 by default) are started over HTTP and left waiting for approval. Prints, per table and session, after a VACUUM as
autovacuum does: bytes of the rows' pages, of TOAST, and of the indexes with the maps of free space; and the bytes of live rows,
since updates leave room that later rows take. The sum without the conversation (the message and the reply) should be 6 kB at most.
Then, before and with N parked sessions, CPU seconds per minute of each process while nothing happens, measured for `--idle`
seconds; and the bytes that Redis holds per session, which should be none.
"""

import argparse
import time

import psycopg
from benchmarks.copies import Db, number
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
FROM thread JOIN event ON event.turn_id = thread.turn_id JOIN reply ON reply.turn_id = thread.turn_id
WHERE thread.status = 'waiting'
"""

Sizes = dict[str, tuple[int, int, int, int]]
"""By table: bytes of pages, of TOAST, of indexes and the rest, and of live rows."""


def sizes(db: Db) -> Sizes:
    """Return the present sizes of every table."""
    rows: list[tuple[str, int, int, int]] = db.execute(_SIZES).fetchall()  # type: ignore[assignment]
    return {name: (heap, toast, total - heap - toast, _alive(db, name)) for name, heap, toast, total in rows}


def _alive(db: Db, table: str) -> int:
    return number(db, f"SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM {table} t")


def show(before: Sizes, after: Sizes, count: int, conversation: float) -> None:
    """Print the table, sorted by size."""
    each = {name: [(b - a) / count for a, b in zip(before[name], after[name], strict=True)] for name in after}
    each["all"] = [sum(parts) for parts in zip(*each.values(), strict=True)]
    print("bytes per session   pages   toast  indexes     all  (alive)")
    for name, (pages, toast, rest, alive) in sorted(each.items(), key=lambda item: sum(item[1][:3])):
        if pages + toast + rest >= 1:
            print(f"{name:18} {pages:6.0f}  {toast:6.0f}   {rest:6.0f}  {pages + toast + rest:6.0f}  {alive:6.0f}")
    whole = sum(each["all"][:3])
    print(f"without its conversation of {conversation:.0f} bytes: {whole - conversation:.0f} (at most 6000)", flush=True)


def idle(at: House, seconds: float) -> dict[str, float]:
    """Return the CPU seconds per minute of each process but the model's while no request is made."""
    named = {name: pid for name, pid in at.pids.items() if name != "standin"}
    before, began = {name: exact_cpu(pid) for name, pid in named.items()}, time.monotonic()
    time.sleep(seconds)
    return {name: 60 * (exact_cpu(pid) - before[name]) / (time.monotonic() - began) for name, pid in named.items()}


def memory(on: Servers) -> int:
    """Return the bytes that Redis holds."""
    with Redis.from_url(on.redis_url) as client:
        used: int = client.info("memory")["used_memory"]
    return used


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("count", nargs="?", type=int, default=10_000, metavar="N")
    options.add_argument("--idle", type=float, default=30, metavar="SECONDS")
    chosen = options.parse_args()
    with servers() as on, house(on) as at, psycopg.connect(at.admin_url, autocommit=True) as db:
        driver = Driver(at)
        driver.cycles(20, 8)
        db.execute("VACUUM ANALYZE")
        time.sleep(10)  # the sweeps finish the cycles' rows
        empty, before, held = idle(at, chosen.idle), sizes(db), memory(on)
        began = time.monotonic()
        parked = driver.park(chosen.count)
        seconds = time.monotonic() - began
        print(f"{len(parked)} sessions parked, {len(parked) / seconds:.0f} per second")
        db.execute("VACUUM ANALYZE")
        row = db.execute(_CONVERSATION).fetchone()
        assert row
        show(before, sizes(db), len(parked), float(str(row[0])))
        time.sleep(10)
        full = idle(at, chosen.idle)
        print(f"Redis: {(memory(on) - held) / len(parked):.0f} bytes per session")
        print(f"CPU seconds per minute   nobody parked   {len(parked)} parked")
        for name in full:
            print(f"{name:22} {empty[name]:14.2f} {full[name]:14.2f}")
        print(f"{'all':22} {sum(empty.values()):14.2f} {sum(full.values()):14.2f}", flush=True)
        driver.close()


if __name__ == "__main__":
    main()
