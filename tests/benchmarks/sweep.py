"""Do a million waiting approvals cost anything before they are due? The real sweeps, on real tables filled by SQL.

    python tests/benchmarks/sweep.py [--rows 1000000] [--due 1000] [--rounds 2] [--folder DIR]

Twice the same: first 1,000 approvals wait and all are due, then a million wait, of which 1,000, spread over all, are due. Each
belongs to a session, a turn and a tool call of its own: copies of those that Assent's verbs wrote, their pages
filled to the brim to spare the disk. Prints, for both:

    nothing due     ms that each sweep takes to find that there is nothing to do, which it does every few seconds for ever
    find            ms of finding the first batch of what is due
    sweep           seconds of `sweep.expire_approvals`, run until nothing is due; then CPU ms per approval, here and in Postgres
    WAL             kB per approval: each is expired, its call settled, the model's next turn queued

and the ratios. What is to be swept is found by indexes over nothing but the rows in question, so the ratios should be about 1. What
grows is that the rows lie far apart: fewer of them are in Postgres's 128 MB of memory, and after a checkpoint, which comes before
each measurement, more whole pages go to the WAL. A million rows take 3 GB below `--folder` (the system's temporary folder unless
given) and some minutes; both are gone afterwards.
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
from benchmarks.copies import Db, copy
from benchmarks.house import Servers, servers
from benchmarks.meters import Cost as Metered
from benchmarks.meters import Meter, spin_ms, timed
from redis import Redis

BYTES_PER_ROW = 3000
WAL_BYTES = 1_500_000_000
"""Of disk: what must be free."""
MEASURED_IDLE = ("dispatch", "rescue", "expire_approvals")

_GONE_ON = """
SELECT count(*) FROM session JOIN approval ON session_id = session.id
WHERE approval.status = 'expired' AND session.status = 'running'
"""


@dataclass(frozen=True)
class Cost:
    """What one size of table cost."""

    idle_ms: dict[str, float]
    find_ms: float
    sweep_seconds: float
    cpu_ms: float
    postgres_ms: float
    wal_kb: float


class Tables:
    """A scratch database with approvals that wait, for a year unless they are made due."""

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
        """More sessions that wait for approval."""
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
        """Let the deadlines of some have passed."""
        ids = [f"appr_bench{first + number * every}" for number in range(count)]
        self.db.execute("UPDATE approval SET expires_at = clock_timestamp() - interval '1 second' WHERE id = ANY(%s)", (ids,))
        self.expired += count

    def check(self) -> None:
        """Each that was due has expired, and its session goes on."""
        row = self.db.execute(_GONE_ON).fetchone()
        assert row == (self.expired,), f"{row} of {self.expired} approvals were expired"

    def settle(self, on: Servers) -> None:
        """Take away what the sweeps caused, and leave the tables as a quiet hour would."""
        self.db.execute("UPDATE turn SET status = 'done' WHERE status = 'queued'")
        with Redis.from_url(on.redis_url) as client:
            client.flushdb()
        self.db.execute("VACUUM ANALYZE")
        self.db.execute("CHECKPOINT")


def measure(on: Servers, tables: Tables, rounds: Sequence[Callable[[], None]], due: int) -> Cost:
    """The sweeps with nothing due, then each round's `due` approvals swept. Medians."""
    from models.flow import due as dues
    from workers import sweeps

    tables.settle(on)
    idle = {name: _ms(getattr(sweeps, name)) for name in MEASURED_IDLE}
    postgres = on.supervisor.pids["postgres"]
    meter = Meter(on.postgres.url("postgres"), {"postgres": postgres, "here": os.getpid()})
    finds, costs = [], []
    for make_due in rounds:
        make_due()
        finds.append(_ms(dues.overdue_approvals))
        before = meter.read()
        while dues.overdue_approvals(1):
            sweeps.expire_approvals()
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
    """The table, with ratios."""
    lines = {f"nothing due: {name}, ms": (small.idle_ms[name], large.idle_ms[name]) for name in MEASURED_IDLE}
    lines |= {
        "find a batch of what is due, ms": (small.find_ms, large.find_ms),
        "sweep all that is due, s": (small.sweep_seconds, large.sweep_seconds),
        "  CPU here, ms per approval": (small.cpu_ms, large.cpu_ms),
        "  CPU of Postgres, ms per approval": (small.postgres_ms, large.postgres_ms),
        "  WAL, kB per approval": (small.wal_kb, large.wal_kb),
    }
    print(f"{'':36} {names[0]:>16} {names[1]:>16}  ratio")
    for name, (a, b) in lines.items():
        print(f"{name:36} {a:16.2f} {b:16.2f}  {b / a:5.2f}", flush=True)


def options() -> argparse.Namespace:
    """What was asked for, if the disk has room for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--due", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    asked = parser.parse_args()
    wanted = asked.rows * BYTES_PER_ROW + WAL_BYTES
    free = shutil.disk_usage(asked.folder).free
    if free < wanted:
        parser.error(f"{asked.folder} has {free >> 20} MB free of {wanted >> 20}: fewer --rows, or another --folder")
    return asked


def main() -> None:
    """Both sizes, one after the other, on one scratch server."""
    asked = options()
    tempfile.tempdir = str(asked.folder)
    with servers() as on, psycopg.connect(on.postgres.url("postgres"), autocommit=True) as db:
        db.execute("ALTER SYSTEM SET max_wal_size = '1GB'")
        db.execute("ALTER SYSTEM SET autovacuum = off")  # it is done by hand, between the measurements
        db.execute("SELECT pg_reload_conf()")
        os.environ |= {"DATABASE_URL": on.postgres.url("app"), "DATABASE_SYSTEM_URL": on.postgres.url("system")}
        os.environ |= {"REDIS_URL": on.redis_url, "ANTHROPIC_API_KEY": "none"}
        tables, due = Tables(db), asked.due

        def renew() -> None:
            if tables.count == tables.expired:
                tables.add(due)
            tables.make_due(tables.expired + 1, 1, due)

        tables.add(due)
        small = measure(on, tables, [renew] * asked.rounds, due)
        first = tables.count + 1
        seconds = timed(lambda: tables.add(asked.rows))
        rounds = [partial(tables.make_due, first + n, asked.rows // due, due) for n in range(asked.rounds)]
        large = measure(on, tables, rounds, due)
        row = db.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row
        print(f"{asked.rows} rows in each of four tables made in {seconds:.0f} s, {int(str(row[0])) >> 20} MB; spin {spin_ms()} ms")
        show(small, large, (f"{due} wait", f"{asked.rows} wait"))


if __name__ == "__main__":
    main()
