"""Meters of a run: CPU of process trees from /proc, write transactions and WAL from Postgres."""

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from benchmarks import counting


@dataclass(frozen=True)
class Reading:
    """All figures at one moment."""

    at: float
    cpu: dict[str, float]
    """CPU seconds by the name of a process."""
    xids: int
    wal: int
    busy: float
    """CPU seconds of the whole machine."""
    messages: int
    """Messages to Postgres, of the processes that count them, without sweeps."""
    statements: int


class Meter:
    """Reads the processes `named`, one Postgres, and the folder of `benchmarks.counting` if there is one."""

    def __init__(self, admin_url: str, named: dict[str, int], counts: Path | None = None) -> None:
        self.db = psycopg.connect(admin_url, autocommit=True)
        self.named = named
        self.counts = counts
        self.sweeps = family(named["sweeps"]) if "sweeps" in named else []

    def read(self) -> Reading:
        """Return the present figures."""
        row = self.db.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,"
            " pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
        ).fetchone()
        assert row
        cpu = {name: tree_cpu(pid) for name, pid in self.named.items()}
        counts = counting.read(self.counts, self.sweeps) if self.counts else (0, 0)
        return Reading(time.monotonic(), cpu, row[0], row[1], machine_cpu(), *counts)


@dataclass(frozen=True)
class Cost:
    """Per cycle, between two readings."""

    rate: float
    cpu_ms: dict[str, float]
    write_tx: float
    wal_bytes: float
    foreign_cores: float
    """Cores that other processes used meanwhile: above about 0.2 the run says little."""
    messages: float
    statements: float

    @property
    def foreign_ms(self) -> float:
        """CPU milliseconds per cycle of processes that are not named, such as those of a sandbox, which no parent collects."""
        return 1000 * self.foreign_cores / self.rate

    @classmethod
    def between(cls, a: Reading, b: Reading, cycles: float) -> "Cost":
        """Return the cost per cycle of the time between two readings."""
        used = {name: b.cpu[name] - a.cpu[name] for name in a.cpu}
        seconds = b.at - a.at
        return cls(
            cycles / seconds,
            {name: 1000 * cpu / cycles for name, cpu in used.items()},
            (b.xids - a.xids) / cycles,
            (b.wal - a.wal) / cycles,
            (b.busy - a.busy - sum(used.values())) / seconds,
            (b.messages - a.messages) / cycles,
            (b.statements - a.statements) / cycles,
        )


def family(pid: int) -> list[int]:
    """Return the process ids of a process and its descendants."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def tree_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants, also of ended ones. For this process: its own seconds."""
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
    """Return the same to the nanosecond where the kernel offers it, but only of living threads and processes."""
    try:
        family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
        return sum(int(t.read_text().split()[0]) for p in family for t in Path(f"/proc/{p}/task").glob("*/schedstat")) / 1e9
    except OSError:  # the kernel has no schedstat, or a process has just ended
        return tree_cpu(pid)


def own_cpu() -> float:
    """Return the CPU seconds of this process."""
    return sum(os.times()[:2])


def machine_cpu() -> float:
    """Return the CPU seconds of the whole machine."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def spin_ms() -> float:
    """Return the CPU milliseconds of a fixed loop, which are lower when the machine is quicker."""
    times = []
    for _ in range(5):
        began, total = time.process_time(), 0
        for i in range(200_000):
            total += i * i
        times.append(1000 * (time.process_time() - began))
    return round(statistics.median(times), 1)


def percentile(values: Iterable[float], p: float) -> float:
    """Return the value below which `p` percent lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]
