"""The leases that this process holds. One thread renews all of them in one statement.

Once a second, the thread also looks for lost leases and for cancelled calls, and measures how late it wakes: a process that lags
claims nothing new.
"""

import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from models.database import renewals
from models.database.leased import Leased
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.row import ToolCall
from models.settings import settings
from workers import leash
from workers.tools.output import OutputSoFar

log = logging.getLogger(__name__)

KEPT_CHARACTERS = 10_000
"""The last characters of a running call's output that are stored for people, in case the worker dies."""


@dataclass
class Lease:
    """The right to work on one row."""

    id: str
    fence: int
    lost: threading.Event = field(default_factory=threading.Event)
    """Set when another worker may have the row: stop, and write nothing."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the call was cancelled: end the work and report the result."""

    def lose(self) -> None:
        """Set `lost`, and `cancelled` to end the work."""
        self.lost.set()
        self.cancelled.set()


class _Heartbeat:
    """The thread that renews leases. The first use starts it, so after any fork."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.settings = settings()  # read here, because an error would end the thread
        self.leases: dict[tuple[str, int], Lease] = {}
        self.reports: dict[str, Callable[[], None]] = {}
        self.lag = 0.0
        self.woke = time.monotonic()
        self._renew(leash.now())
        threading.Thread(target=self._beat, name="leases", daemon=True).start()

    def _beat(self) -> None:
        while True:
            self.woke = time.monotonic()
            time.sleep(self.settings.watch_seconds)
            self.lag = time.monotonic() - self.woke - self.settings.watch_seconds
            if self.leases:
                self._tick()
            else:
                self._renew(leash.now())

    def _renew(self, at: float) -> None:
        """Record that all leases were renewed at `at`, also if there are none."""
        self.renewed = at
        leash.extend(at + self.settings.lease_seconds)

    @property
    def late(self) -> float:
        """Seconds by which the last wake-up was late, or by which the next one is overdue."""
        return max(self.lag, time.monotonic() - self.woke - self.settings.watch_seconds)

    def _tick(self) -> None:
        leases = dict(self.leases)
        start_time = leash.now()  # before the statement: this process must never think that a lease lasts longer than it does
        due = start_time - self.renewed >= self.settings.heartbeat_seconds
        try:
            cancelled = (renewals.renew if due else renewals.look)(leases)
        except Exception as error:  # noqa: BLE001 - the next tick tries again: without this thread all leases end
            log.warning("leases: not renewed (%s)", type(error).__name__)
            if start_time - self.renewed > self.settings.lease_seconds:
                for held_lease in leases.values():
                    held_lease.lose()
            return
        if due:
            self._renew(start_time)
        newest = dict(sorted(leases))
        for (row_id, fence), held_lease in leases.items():
            if row_id not in cancelled or fence != newest[row_id]:  # this process may have claimed the row anew
                held_lease.lose()
            elif cancelled[row_id]:
                held_lease.cancelled.set()
        for report in list(self.reports.values()) if due else ():  # last, because each may wait for the database
            report()


_heartbeat: _Heartbeat | None = None
_starting = threading.Lock()


def _here() -> _Heartbeat:
    global _heartbeat  # noqa: PLW0603 - one per process, made anew after a fork
    with _starting:
        if _heartbeat is None or _heartbeat.pid != os.getpid():
            _heartbeat = _Heartbeat()
        return _heartbeat


def worker() -> str:
    """Return the name of this process in rows and for people: its machine and its pid."""
    return f"{socket.gethostname()}:{os.getpid()}"


@contextmanager
def hold(row: Leased) -> Iterator[Lease]:
    """Keep the lease on a claimed row until the block ends."""
    lease = Lease(row.id, row.fence)
    leases = _here().leases
    leases[(lease.id, lease.fence)] = lease
    try:
        yield lease
    finally:
        del leases[(lease.id, lease.fence)]


@contextmanager
def reporting(call: ToolCall, output: OutputSoFar) -> Iterator[None]:
    """Store a call's output so far with every heartbeat until the block ends, so that people see it if the worker dies."""
    last_text = ""

    def report() -> None:
        nonlocal last_text
        text = "".join(output.texts().values())
        if text in ("", last_text):
            return
        try:
            Attempt.say(call, text[-KEPT_CHARACTERS:])
        except Exception as error:  # noqa: BLE001 - the leases are more important
            log.warning("call %s: its output so far was not stored (%s)", call.id, type(error).__name__)
            return
        last_text = text

    reports = _here().reports
    reports[call.id] = report
    try:
        yield
    finally:
        reports.pop(call.id, None)


def ready(patience: float = 5) -> bool:
    """True if this process may claim new work. A busy process first waits for up to `patience` seconds.

    If the result is False, the row stays queued, and a later hint follows.
    """
    until = time.monotonic() + patience
    while _busy():
        if time.monotonic() > until:
            return False
        time.sleep(random.uniform(0.1, 0.5))  # noqa: S311 - so that not all threads wake at once
    return True


def _busy() -> bool:
    heartbeat = _here()
    return heartbeat.late > settings().max_lag_seconds or len(heartbeat.leases) >= settings().turns_in_flight
