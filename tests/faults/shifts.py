"""Workers beside each other, as in a deploy or a takeover, which tests start, stop and wake."""

import contextlib
import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from crashes.invariants import Seen
from crashes.journey import pid_of
from crashes.processes import READY, TOOLS, TURNS, WORKER, Process, wait_for

from models.database.tables import table_of

ALL = [*WORKER, "-P", "prefork", "-c", "3", "-Q", "turns,tools,sweeps"]
KINDS = {"turns": [*TURNS, "--include", "faults.preload"], "tools": TOOLS, "all": ALL}
START_SECONDS = 60
"""Long, because several workers start at a time, and each loads for seconds."""


@dataclass
class Worker:
    """One worker with all of its processes."""

    name: str
    process: Process

    @classmethod
    def start(cls, name: str, env: dict[str, str], folder: Path) -> "Worker":
        """Start a worker. Its name is its kind and a suffix: `tools-1`."""
        command = [*KINDS[name.partition("-")[0]], "-n", f"{name}@%h"]
        return cls(name, Process(command, env, folder / f"{name}.log"))

    def ready(self) -> "Worker":
        """Wait until the worker consumes. Returns the worker."""

        def consumes() -> object:
            assert self.process.running.poll() is None, self.log[-3000:]
            return re.search(READY, self.log)

        wait_for(f"{self.name} is ready", consumes, START_SECONDS)
        return self

    def sleep(self) -> None:
        """Send SIGSTOP to all of its processes."""
        for process in self.process.family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()

    def wake(self) -> None:
        """Send SIGCONT to all of its processes."""
        for process in self.process.family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def ask_to_end(self) -> None:
        """Send SIGTERM to its main process, as supervisors do."""
        self.process.running.send_signal(signal.SIGTERM)

    @property
    def pids(self) -> set[int]:
        """The ids of all of its processes."""
        return {process.pid for process in self.process.family}

    def has(self, worker: str | None) -> bool:
        """True if a row's worker is a process of this worker."""
        return pid_of(worker) in self.pids

    @property
    def log(self) -> str:
        """The whole log."""
        return self.process.log.read_text()

    @property
    def under_way(self) -> set[str]:
        """The ids of the tasks that the worker has received and not ended."""
        received, ended = (set(re.findall(rf"Task \S+\[(\S+)\] {word}", self.log)) for word in ("received", "(?:succeeded|raised)"))
        return received - ended


def photograph(seen: Seen) -> dict[str, list[dict[str, Any]]]:
    """Every column of every row of a session, to compare with later ones."""
    tables: dict[str, Iterable[Any]] = {
        "session": [seen.session],
        "turns": seen.turns,
        "calls": seen.calls,
        "attempts": seen.attempts,
        "approvals": seen.approvals,
        "events": seen.events,
        "audit": seen.audit,
    }
    return {name: [_columns(row) for row in rows] for name, rows in tables.items()}


def _columns(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in table_of(type(row)).columns}
