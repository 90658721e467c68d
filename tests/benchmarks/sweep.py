"""Do a million waiting approvals cost anything before they are due? The real sweeps, on real tables filled by SQL.

    make bench ARGS="sweep [--rows 1000000] [--due 1000] [--rounds 2] [--folder DIR]"

Measures twice: first 1,000 approvals wait and all are due, then a million wait and 1,000 of them, spread evenly, are due. Each has
a session, a turn and a tool call of its own: copies of rows that Assent's verbs wrote, on full pages to save disk. Prints, for
both:

    nothing due     ms of each sweep when nothing is due; a sweep runs every few seconds
    find            ms of finding the first batch of due approvals
    sweep           seconds of `sweep.expire_approvals`, run until nothing is due; then CPU ms per approval, here and in Postgres
    WAL             kB per approval: each is expired, its call settled, the model's next turn queued

and the ratios. Partial indexes over only the waiting rows find the due rows, so the ratios should be about 1. But in the large
tables the due rows lie far apart: fewer of them are in Postgres's 128 MB of memory, and after the checkpoint before each
measurement more whole pages go to the WAL. A million rows take 3 GB below `--folder` (the system's temporary folder unless given)
and some minutes; both are gone afterwards.
"""

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
from benchmarks.copies import Db, copy, number
from benchmarks.house import Servers, servers
from benchmarks.meters import Cost as Metered
from benchmarks.meters import Meter, spin_ms, timed
from redis import Redis

BYTES_PER_ROW = 3000
WAL_BYTES = 1_500_000_000
"""Free disk space that the WAL needs."""
MEASURED_IDLE = ("sweep.dispatch", "sweep.rescue", "sweep.expire_approvals")

_GONE_ON = """
SELECT count(*) FROM session JOIN approval ON session_id = session.id
WHERE approval.status = 'expired' AND session.status = 'running'
"""


@dataclass(frozen=True)
class Cost:
    """The costs at one size of the tables."""

    idle_ms: dict[str, float]
    find_ms: float
    sweep_seconds: float
    cpu_ms: float
    postgres_ms: float
    wal_kb: float


class Tables:
    """A scratch database with approvals whose deadlines are in a year, unless they are made due."""

    def __init__(self, db: Db) -> None:
        from rows.stage import Stage, call  # reads the settings, which name this database

        self.db = db
        stage = Stage()
        self.first = stage.session()
        stage.message(self.first)
        stage.reply(self.first, call("bash", command="make deploy"))
        self.count = self.expired = 0
        for table in ("session", "turn", "tool_call"):
            db.execute(f"ALTER TABLE {table} SET (fillfactor = 100)")

    def add(self, count: int) -> None:
        """Add sessions that wait for approval."""
        session, turn, tool_call = "'sesn_bench' || n", "'turn_bench' || n", "'sevt_bench' || n"

        later = "clock_timestamp() + interval '1 year'"
        copies = {
            "session": {"id": session, "turn_id": turn},
            "turn": {"id": turn, "session_id": session},
            "tool_call": {"id": tool_call, "session_id": session, "turn_id": turn},
            "approval": {"id": "'appr_bench' || n", "session_id": session, "tool_call_id": tool_call, "expires_at": later},
        }
        for table, changed in copies.items():
            of_it = "id" if table == "session" else "session_id"
            copy(self.db, table, f"{of_it} = '{self.first}'", changed, count, self.count + 1)
        of_first = f"tool_call_id = (SELECT id FROM tool_call WHERE session_id = '{self.first}')"
        copy(self.db, "call_input", of_first, {"tool_call_id": tool_call}, count, self.count + 1)
        self.count += count

    def make_due(self, first: int, every: int, count: int) -> None:
        """Move the deadlines of `count` approvals into the past: number `first`, and every `every`-th after it."""
        ids = [f"appr_bench{first + n * every}" for n in range(count)]
        self.db.execute("UPDATE approval SET expires_at = clock_timestamp() - interval '1 second' WHERE id = ANY(%s)", (ids,))
        self.expired += count

    def check(self) -> None:
        """Check that each due approval has expired, and that its session goes on."""
        count = number(self.db, _GONE_ON)
        assert count == self.expired, f"{count} of {self.expired} approvals were expired"

    def settle(self, on: Servers) -> None:
        """Remove the turns and hints that the sweeps caused, and leave the tables as after a quiet hour."""
        self.db.execute("UPDATE turn SET status = 'done' WHERE status = 'queued'")
        with Redis.from_url(on.redis_url) as client:
            client.flushdb()
        self.db.execute("VACUUM ANALYZE")
        self.db.execute("CHECKPOINT")


def measure(on: Servers, tables: Tables, rounds: Sequence[Callable[[], None]], due: int) -> Cost:
    """Run the sweeps with nothing due, then over `due` approvals in each round. Returns the medians."""
    from models.operate import due as dues
    from workers.celery import app
    from workers.sweeps import deadlines

    app.loader.import_default_modules()  # registers the tasks
    tables.settle(on)
    idle = {name: _ms(app.tasks[name]) for name in MEASURED_IDLE}
    postgres = on.supervisor.pids["postgres"]
    meter = Meter(on.postgres.url("postgres"), {"postgres": postgres, "here": os.getpid()})
    finds, costs = [], []
    for make_due in rounds:
        make_due()
        finds.append(_ms(dues.overdue_approvals))
        before = meter.read()
        while dues.overdue_approvals(1):
            deadlines.expire_approvals()
        costs.append(Metered.between(before, meter.read(), due))
        tables.check()
    return Cost(
        idle,
        statistics.median(finds),
        statistics.median(due / cost.rate for cost in costs),
        statistics.median(cost.cpu_ms["here"] for cost in costs),
        statistics.median(cost.cpu_ms["postgres"] for cost in costs),
        statistics.median(cost.wal_bytes for cost in costs) / 1000,
    )


def _ms(work: Callable[[], object]) -> float:
    return 1000 * statistics.median(timed(work) for _ in range(7))


def show(small: Cost, large: Cost, names: tuple[str, str]) -> None:
    """Print the table, with ratios."""
    lines = {f"nothing due: {name}, ms": (small.idle_ms[name], large.idle_ms[name]) for name in MEASURED_IDLE}
    lines |= {
        "find a batch of due approvals, ms": (small.find_ms, large.find_ms),
        "sweep all due approvals, s": (small.sweep_seconds, large.sweep_seconds),
        "  CPU here, ms per approval": (small.cpu_ms, large.cpu_ms),
        "  CPU of Postgres, ms per approval": (small.postgres_ms, large.postgres_ms),
        "  WAL, kB per approval": (small.wal_kb, large.wal_kb),
    }
    print(f"{'':36} {names[0]:>16} {names[1]:>16}  ratio")
    for name, (a, b) in lines.items():
        print(f"{name:36} {a:16.2f} {b:16.2f}  {b / a:5.2f}", flush=True)


def options() -> argparse.Namespace:
    """Return the command's options. Exits with an error if the disk is too small."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--due", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    chosen = parser.parse_args()
    needed = chosen.rows * BYTES_PER_ROW + WAL_BYTES
    free = shutil.disk_usage(chosen.folder).free
    if free < needed:
        parser.error(f"{chosen.folder} has {free >> 20} MB free and needs {needed >> 20}: use fewer --rows, or another --folder")
    return chosen


def main() -> None:
    """Measure both sizes on one scratch server, and print."""
    chosen = options()
    tempfile.tempdir = str(chosen.folder)
    with servers() as on, psycopg.connect(on.postgres.url("postgres"), autocommit=True) as db:
        db.execute("ALTER SYSTEM SET max_wal_size = '1GB'")
        db.execute("ALTER SYSTEM SET autovacuum = off")  # `settle` does it between the measurements
        db.execute("SELECT pg_reload_conf()")
        os.environ |= {"DATABASE_URL": on.postgres.url("app"), "DATABASE_SYSTEM_URL": on.postgres.url("system")}
        os.environ |= {"REDIS_URL": on.redis_url, "ANTHROPIC_API_KEY": "none"}
        tables, due = Tables(db), chosen.due

        def renew() -> None:
            if tables.count == tables.expired:
                tables.add(due)
            tables.make_due(tables.expired + 1, 1, due)

        tables.add(due)
        small = measure(on, tables, [renew] * chosen.rounds, due)
        first = tables.count + 1
        seconds = timed(lambda: tables.add(chosen.rows))
        rounds = [partial(tables.make_due, first + n, chosen.rows // due, due) for n in range(chosen.rounds)]
        large = measure(on, tables, rounds, due)
        size = number(db, "SELECT pg_database_size(current_database())")
        print(f"{chosen.rows} rows in each of four tables made in {seconds:.0f} s, {size >> 20} MB; spin {spin_ms()} ms")
        show(small, large, (f"{due} wait", f"{chosen.rows} wait"))


if __name__ == "__main__":
    main()
