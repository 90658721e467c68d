"""Workers of one queue beside each other, as a deploy or a takeover has them, and what can be done to them."""

import contextlib
import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa
from crashes.invariants import Seen
from crashes.processes import READY, TOOLS, TURNS, WORKER, Process, wait_for

ALL = [*WORKER, "-P", "prefork", "-c", "3", "-Q", "turns,tools,sweeps"]
KINDS = {"turns": [*TURNS, "--include", "faults.preload"], "tools": TOOLS, "all": ALL}
START_SECONDS = 60
"""Several start at a time, and each loads for seconds."""


def pid_of(worker: str | None) -> int:
    """The process that a row's worker is; 0 for none."""
    return int((worker or "0").rpartition(":")[2])


@dataclass
class Worker:
    """One worker with all of its processes."""

    name: str
    process: Process

    @classmethod
    def start(cls, name: str, env: dict[str, str], folder: Path) -> "Worker":
        """Start one; it is called by its kind and a word more, as `tools-1`."""
        words = [*KINDS[name.partition("-")[0]], "-n", f"{name}@%h"]
        return cls(name, Process(words, env, folder / f"{name}.log"))

    def ready(self) -> "Worker":
        """Wait until it consumes."""

        def consumes() -> object:
            assert self.process.running.poll() is None, self.log[-3000:]
            return re.search(READY, self.log)

        wait_for(f"{self.name} is ready", consumes, START_SECONDS)
        return self

    def sleep(self) -> None:
        """SIGSTOP, all of it: nothing of it does anything until it is woken."""
        for one in self.process.family:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.suspend()

    def wake(self) -> None:
        """SIGCONT, all of it."""
        for one in self.process.family:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.resume()

    def ask_to_end(self) -> None:
        """SIGTERM to its main process, as supervisors do."""
        self.process.running.send_signal(signal.SIGTERM)

    @property
    def pids(self) -> set[int]:
        """Of all of its processes."""
        return {one.pid for one in self.process.family}

    def has(self, worker: str | None) -> bool:
        """Whether a row's worker is a process of this one."""
        return pid_of(worker) in self.pids

    @property
    def log(self) -> str:
        """All that it has said."""
        return self.process.log.read_text()

    @property
    def under_way(self) -> set[str]:
        """The queue messages that it has taken and not done with."""
        taken, done = (set(re.findall(rf"Task \S+\[(\S+)\] {word}", self.log)) for word in ("received", "(?:succeeded|raised)"))
        return taken - done


def photograph(seen: Seen) -> dict[str, list[dict[str, Any]]]:
    """Every column of every row of a session, to be compared."""
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
    return {column.key: getattr(row, column.key) for column in sa.inspect(type(row)).column_attrs}
