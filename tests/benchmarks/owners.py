"""The owners of a cycle's CPU: samples of the Python processes' stacks, each counted for the innermost frame that has an owner.

So the SDK owns its calls into `json` or gevent's sockets, and we own our calls into pydantic or `json`. Only threads that hold the
interpreter's lock are sampled, since other idle threads look busy. The shares within a process are scaled to the CPU that it took
without the sampler. So work without the lock, such as the kernel's part of sending, is distributed by the same shares.
Needs py-spy (`pip install py-spy`), and the right to look into other processes (root, or CAP_SYS_PTRACE).
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.house import ROOT

PACKAGES = {
    "SDK": ("anthropic", "httpx2", "httpcore2", "h11"),
    "Celery": ("celery", "kombu", "billiard", "vine", "amqp"),
    "Flask": ("flask", "werkzeug", "gunicorn"),
    "database client": ("sqlalchemy", "psycopg", "psycopg_binary"),
}
OWNERS = {package: owner for owner, packages in PACKAGES.items() for package in packages}
OURS = ("api", "models", "workers")
NOBODY = "event loop"
"""Of gevent and the interpreter themselves: no frame on the stack had an owner."""
RATE = 100
"""Samples per second of each process."""

_FRAME = re.compile(r"(?P<name>.*) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)")


@dataclass
class Shares:
    """CPU ms per cycle, in all processes together."""

    by_owner: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    ours_alone: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By function of ours, without the calls that others own."""
    ours_in_all: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By function of ours, with all that it calls."""
    samples: int = 0

    def add(self, stacks: Counter[tuple[str, ...]], cpu_ms: float) -> None:
        """Add a process's stacks, outermost frame first, which are worth `cpu_ms` together."""
        total = sum(stacks.values())
        self.samples += total
        for stack, count in stacks.items():
            worth = cpu_ms * count / total
            owned = [(owner, frame) for owner, frame in ((owner_of(frame), frame) for frame in stack) if owner]
            owner, frame = owned[-1] if owned else (NOBODY, "")
            self.by_owner[owner] += worth
            if owner == "ours":
                self.ours_alone[named(frame)] += worth
            for each in {named(f) for o, f in owned if o == "ours"}:
                self.ours_in_all[each] += worth

    def print(self, cpu_ms: dict[str, float], cycles_in_profile: int) -> None:
        """Print the two tables. `cpu_ms` is that of the processes that were metered and not sampled."""
        everything = self.by_owner | cpu_ms
        whole = sum(everything.values())
        print(f"    whose CPU, ms per cycle ({self.samples} samples over {cycles_in_profile} cycles):")
        for owner, ms in sorted(everything.items(), key=lambda item: -item[1]):
            print(f"      {owner:16} {ms:6.1f}  {100 * ms / whole:4.0f} %")
        print("    ours by function, ms per cycle: itself, with all that it calls")
        for name, ms in sorted(self.ours_alone.items(), key=lambda item: -item[1])[:15]:
            print(f"      {ms:6.2f} {self.ours_in_all[name]:6.1f}  {name}", flush=True)


def sampler() -> str | None:
    """Return py-spy's path, or None if it is not installed."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def profile(processes: dict[str, int], cpu_ms: dict[str, float], seconds: int, work: Callable[[], int]) -> tuple[Shares, int]:
    """Sample `processes` for `seconds` while `work` runs again and again. Returns the shares and the number of cycles.

    `work` returns the number of its cycles. `cpu_ms` is the CPU of each process per cycle, without the sampler.
    """
    program = sampler()
    assert program, "py-spy is not installed; run pip install py-spy"
    with tempfile.TemporaryDirectory() as folder:
        words = ["record", "--nonblocking", "--gil", "--subprocesses", "--function", "--full-filenames", "--format", "raw"]
        words += ["--rate", str(RATE), "--duration", str(seconds)]
        watchers = [
            subprocess.Popen(
                [program, *words, "--output", f"{folder}/{name}", "--pid", str(pid)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for name, pid in processes.items()
        ]
        cycles = 0
        while any(watcher.poll() is None for watcher in watchers):
            cycles += work()
        shares = Shares()
        for watcher, name in zip(watchers, processes, strict=True):
            error = watcher.communicate()[1]
            assert watcher.returncode == 0, f"py-spy could not sample {name}: {error[-300:]}"
            shares.add(read(Path(folder, name)), cpu_ms[name])
    return shares, cycles


def read(file: Path) -> Counter[tuple[str, ...]]:
    """Return how often each stack occurs in a file of py-spy's raw format: frames with semicolons between, then the count.

    A process whose command line has several lines has as many lines per stack, of which the last has the frames and the count.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for line in file.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        if count.isdigit():
            counts[tuple(stack.split(";"))] += int(count)
    return counts


def owner_of(frame: str) -> str | None:
    """Return the owner of a frame. None for shared code: the standard library, pydantic, redis, gevent, the benchmarks."""
    if not (match := _FRAME.fullmatch(frame)):
        return None
    _, installed, inside = match["file"].rpartition("site-packages/")
    if installed:
        return OWNERS.get(re.split(r"[/.]", inside)[0])
    file = Path(match["file"])
    if file == ROOT / "models" / "database" / "exchange.py":
        return "database client"  # the steps of psycopg's own exchanges
    return "ours" if file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in OURS else None


def named(frame: str) -> str:
    """Return a short name for a frame of ours."""
    match = _FRAME.fullmatch(frame)
    assert match
    return f"{match['name']} ({Path(match['file']).relative_to(ROOT)}:{match['line']})"
