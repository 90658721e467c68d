"""A backlog of queued turns after Redis lost all hints: how fast is it worked off, and how long does another workspace's turn wait?

    make bench ARGS="backlog [--turns 5000] [--rows 1000000] [--takers 4] [--folder DIR]"

Threads take hints from Redis and claim the turns, as workers do, but ask no model. The dispatch sweep runs as often as the beat
sends it. Prints

    worked off     turns per second, from the first sweep to the last claim, beside the rate of the same threads without hints
    waits behind   turns of the backlog that are claimed before another workspace's turn, which is queued when half are claimed
    hint queries   ms of a dispatch's queries over 10,000 queued rows and over `--rows`, hinted a moment ago or not at all

A million rows take 1 GB below `--folder` (the system's temporary folder unless given).
"""

import argparse
import os
import queue
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
from benchmarks.copies import Db, copy
from benchmarks.house import servers
from benchmarks.meters import spin_ms, timed
from redis import Redis

SMALL = 10_000
_AGO = "clock_timestamp() - interval '1 hour' + n * interval '1 ms'"


class Backlog:
    """Queued turns of one workspace, copied from one that Assent wrote, and another workspace."""

    def __init__(self, db: Db) -> None:
        from rows.stage import Stage, call  # reads the settings, which name this database

        self.db, self.stage, self.other, self.number = db, Stage(), Stage(), 0
        self.model = self.stage.session()
        self.stage.message(self.model)
        self.called = self.stage.session(bash="always_allow")
        self.stage.message(self.called)
        self.stage.reply(self.called, call("bash", command="true"))
        db.execute("UPDATE turn SET due_at = due_at + interval '1 day' WHERE session_id = %s", (self.model,))
        db.execute("UPDATE tool_call SET due_at = due_at + interval '1 day' WHERE session_id = %s", (self.called,))

    def add(self, count: int) -> list[tuple[str, str]]:
        """Add sessions with a queued turn that has no hint. Returns the ids of sessions and turns."""
        first = self.number + 1
        session, turn = "'sesn_bench' || n", "'turn_bench' || n"
        copies = {
            "session": {"id": session, "turn_id": turn},
            "turn": {"id": turn, "session_id": session, "due_at": _AGO, "hinted_at": "NULL"},
            "event": {"id": "row.id || n", "session_id": session},
        }
        for table, changed in copies.items():
            of_it = "id" if table == "session" else "session_id"
            copy(self.db, table, f"{of_it} = '{self.model}'", changed, count, first)
        self.number += count
        self.db.execute("VACUUM ANALYZE")
        return [(f"sesn_bench{n}", f"turn_bench{n}") for n in range(first, first + count)]


@contextmanager
def beat() -> Iterator[None]:
    """Run the dispatch sweep as often as the beat sends it."""
    from models.settings import settings
    from workers.sweeps import dispatching

    over = threading.Event()

    def run() -> None:
        while True:
            dispatching.dispatch()
            if over.wait(settings().sweep_seconds):
                return

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        try:
            yield
        finally:
            over.set()
            done.result()


def work_off(backlog: Backlog, turns: list[tuple[str, str]], takers: int) -> tuple[float, int]:
    """Return the seconds until all turns are claimed, and how many were claimed while another workspace's turn waited."""
    from models.settings import settings
    from workers.celery import app

    stages = {stage.workspace_id: stage for stage in (backlog.stage, backlog.other)}
    rows: list[str] = []

    def take() -> None:
        with app.connection_for_read(settings().redis_url) as connection, connection.SimpleQueue("turns", no_ack=True) as messages:
            while len(rows) <= len(turns):
                try:
                    turn_id, session_id, workspace_id = messages.get(timeout=0.5).payload[0]
                except queue.Empty:
                    continue
                if stages[workspace_id].claim_turn(session_id, turn_id):
                    rows.append(workspace_id)

    began, session = time.monotonic(), backlog.other.session()
    with beat(), ThreadPoolExecutor(takers) as pool:
        futures = [pool.submit(take) for _ in range(takers)]
        while len(rows) < len(turns) / 2 and not any(future.done() for future in futures):
            time.sleep(0.01)
        backlog.other.message(session)
        queued_at = len(rows)
        for future in futures:
            future.result()
        seconds = time.monotonic() - began
    return seconds, max(0, rows.index(backlog.other.workspace_id) - queued_at)


def without_hints(backlog: Backlog, turns: list[tuple[str, str]], takers: int) -> float:
    """Return the seconds in which the same number of threads claims the turns of a list."""
    with ThreadPoolExecutor(takers) as pool:
        return timed(lambda: list(pool.map(lambda ids: backlog.stage.claim_turn(*ids), turns)))


def fill(backlog: Backlog, rows: int) -> None:
    """Add so many queued turns, calls and notifications, without their sessions."""
    db, workspace = backlog.db, backlog.stage.workspace_id
    turn = {"id": "'turn_row' || n", "session_id": "'sesn_row' || n", "due_at": _AGO, "hinted_at": "NULL"}
    copy(db, "turn", f"session_id = '{backlog.model}'", turn, rows)
    copied = {"id": "'sevt_row' || n", "due_at": _AGO, "hinted_at": "NULL"}
    copy(db, "tool_call", f"session_id = '{backlog.called}'", copied, rows)
    db.execute("SET session_replication_role = replica")
    db.execute(_NOTIFICATIONS.format(ago=_AGO), (workspace, rows))
    db.execute("SET session_replication_role = origin")
    db.execute("VACUUM ANALYZE turn, tool_call, notification")


def remove(backlog: Backlog) -> None:
    """Remove what `fill` added."""
    backlog.db.execute("SET session_replication_role = replica")
    for table in ("turn", "tool_call", "notification"):
        backlog.db.execute(f"DELETE FROM {table} WHERE id LIKE '%_row%'")
    backlog.db.execute("SET session_replication_role = origin")
    backlog.db.execute("VACUUM ANALYZE turn, tool_call, notification")


_NOTIFICATIONS = """
    INSERT INTO notification (id, workspace_id, session_id, approval_id, channel_id, stage, seq, status, fence, attempt, error,
        due_at, created_at)
    SELECT 'ntfn_row' || n, %s, 'sesn_1', 'appr_' || n, 'chan_1', 'requested', 1, 'queued', 0, 0, '',
        {ago}, now() FROM generate_series(1, %s) n
"""


def queries() -> dict[str, float]:
    """Return the milliseconds of each hint query. Each is the median of queries that hint, and of ones that find all hinted."""
    from models.notices.notification import Notification
    from models.operate import due, queued
    from models.session.tool_call.row import ToolCall
    from models.session.turn.row import Turn

    looks: dict[str, Callable[[], object]] = {
        "turns": lambda: queued.hints(Turn),
        "calls": lambda: (queued.queues(), queued.hints(ToolCall)),
        "notifications": lambda: (queued.change_hints(), queued.hints(Notification)),
        "rescue of turns": lambda: due.lapsed(Turn),
    }
    return {name: 1000 * statistics.median(timed(look) for _ in range(9)) for name, look in looks.items()}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--takers", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    chosen = parser.parse_args()
    tempfile.tempdir = str(chosen.folder)
    with servers() as on, psycopg.connect(on.postgres.url("postgres"), autocommit=True) as db:
        os.environ |= {"DATABASE_URL": on.postgres.url("app"), "DATABASE_SYSTEM_URL": on.postgres.url("system")}
        os.environ |= {"REDIS_URL": on.redis_url, "ANTHROPIC_API_KEY": "none"}
        backlog = Backlog(db)
        floor = without_hints(backlog, backlog.add(chosen.turns), chosen.takers)
        turns = backlog.add(chosen.turns)
        with Redis.from_url(on.redis_url) as client:
            client.flushdb()
        seconds, before = work_off(backlog, turns, chosen.takers)
        rate, most = chosen.turns / seconds, chosen.turns / floor
        print(f"worked off: {rate:.0f} turns/s, without hints {most:.0f} turns/s, ratio {rate / most:.2f}; spin {spin_ms()} ms")
        print(f"waits behind: {before} turns", flush=True)
        times = []
        for rows in (SMALL, chosen.rows):
            fill(backlog, rows)
            times.append(queries())
            remove(backlog)
        print(f"{'hint queries, ms':20} {SMALL:>10} {chosen.rows:>10}  ratio")
        for name, small in times[0].items():
            print(f"{name:20} {small:10.1f} {times[1][name]:10.1f}  {times[1][name] / small:5.2f}")


if __name__ == "__main__":
    main()
