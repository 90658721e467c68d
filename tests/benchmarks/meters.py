"""What a run cost: CPU of process trees from /proc, write transactions and WAL from Postgres."""

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg


@dataclass(frozen=True)
class Reading:
    """Everything at one moment."""

    at: float
    cpu: dict[str, float]
    """Seconds, by the name of a process."""
    xids: int
    wal: int
    busy: float
    """CPU seconds of the whole machine."""


class Meter:
    """Reads the processes `named` and one Postgres."""

    def __init__(self, admin_url: str, named: dict[str, int]) -> None:
        self.db = psycopg.connect(admin_url, autocommit=True)
        self.named = named

    def read(self) -> Reading:
        """Now."""
        row = self.db.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,"
            " pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
        ).fetchone()
        assert row
        times = psutil.cpu_times()
        busy = sum(times) - times.idle - times.iowait - times.guest - times.guest_nice
        return Reading(time.monotonic(), {name: tree_cpu(pid) for name, pid in self.named.items()}, row[0], row[1], busy)


@dataclass(frozen=True)
class Cost:
    """Per cycle, between two readings."""

    rate: float
    cpu_ms: dict[str, float]
    write_tx: float
    wal_bytes: float
    foreign_cores: float
    """What others used of the machine meanwhile: above about 0.2 the run says little."""

    @classmethod
    def between(cls, a: Reading, b: Reading, cycles: float) -> "Cost":
        """The difference."""
        used = {name: b.cpu[name] - a.cpu[name] for name in a.cpu}
        seconds = b.at - a.at
        return cls(
            cycles / seconds,
            {name: 1000 * cpu / cycles for name, cpu in used.items()},
            (b.xids - a.xids) / cycles,
            (b.wal - a.wal) / cycles,
            (b.busy - a.busy - sum(used.values())) / seconds,
        )


def tree_cpu(pid: int) -> float:
    """User and system seconds of a process and its descendants, ended ones too; of this process, its own."""
    if pid == os.getpid():
        return own_cpu()
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    total = 0.0
    for process in family:
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total


def exact_cpu(pid: int) -> float:
    """Likewise, to the nanosecond where the kernel tells, but only of threads and processes that live."""
    try:
        family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
        return sum(int(t.read_text().split()[0]) for p in family for t in Path(f"/proc/{p}/task").glob("*/schedstat")) / 1e9
    except OSError:  # no such kernel, or one of them ended just now
        return tree_cpu(pid)


def own_cpu() -> float:
    """Of this process."""
    return sum(os.times()[:2])


def timed(work: Callable[[], object]) -> float:
    """Seconds that something takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def spin_ms() -> float:
    """CPU of a fixed loop: how quick this machine is right now; lower is quicker."""
    found = []
    for _ in range(5):
        began, total = time.process_time(), 0
        for i in range(200_000):
            total += i * i
        found.append(1000 * (time.process_time() - began))
    return round(statistics.median(found), 1)


def percentile(values: Iterable[float], p: float) -> float:
    """The value below which `p` percent lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]
