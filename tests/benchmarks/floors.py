"""The floors of a gated cycle: its Celery tasks without work, and its commits with one row each."""

import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
from benchmarks.driver import Loop
from benchmarks.house import House
from benchmarks.meters import Cost, Meter
from celery import Celery

CONNECTIONS = 4


class BareTasks(Loop):
    """Cycles of three no-op tasks on Assent's workers, sent as the API and the tools send theirs."""

    def __init__(self, at: House, redis_url: str) -> None:
        super().__init__(at)
        self.celery = Celery("floor", broker=redis_url, set_as_current=False)
        self.celery.conf.task_ignore_result = True

    def start(self) -> str:
        """Send the first turn."""
        cycle_id = uuid.uuid4().hex
        self.celery.send_task("turn.bare", (cycle_id, False), queue="turns", retry=False)
        return cycle_id

    def allow(self, session_id: str, _: str) -> None:
        """Send the tool, which sends the second turn."""
        self.celery.send_task("tool.bare", (session_id,), queue="tools", retry=False)

    def close(self) -> None:
        """Read no more marks, and close the broker's connections."""
        super().close()
        self.celery.close()


def bare_commits(at: House, per_cycle: int, seconds: float = 3) -> Cost:
    """Return the cost of a cycle of `per_cycle` commits, each with one small row, over a few connections."""
    with psycopg.connect(at.admin_url, autocommit=True) as db:
        db.execute("CREATE TABLE IF NOT EXISTS bench_log (id bigserial PRIMARY KEY, note text)")
    meter = Meter(at.admin_url, {"postgres": at.pids["postgres"], "driver": os.getpid()}, at.counts)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        before = meter.read()
        counts = list(pool.map(_commit, [at.admin_url] * CONNECTIONS, [time.monotonic() + seconds] * CONNECTIONS))
        after = meter.read()
    return Cost.between(before, after, sum(counts) / per_cycle)


def _commit(admin_url: str, until: float) -> int:
    count = 0
    with psycopg.connect(admin_url, autocommit=True) as db:
        while time.monotonic() < until:
            db.execute("INSERT INTO bench_log (note) VALUES ('x')")
            count += 1
    return count
