"""The leases that this process holds, renewed by one thread in one statement, whatever the load.

The thread also looks once a second whether a lease was lost or a cancel asked for, and measures how late it wakes: a
process that lags claims nothing new.
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

from models.session import lease
from models.session.attempt import Attempt
from models.session.tool_call import ToolCall
from models.settings import settings
from workers.tools.output import OutputSoFar
from workers.tools.sandbox import lease_clock

log = logging.getLogger(__name__)

TOLD_CHARACTERS = 10_000
"""The end of a running call's output that is kept for people, should its worker die."""


@dataclass
class Lease:
    """The right to work on one row."""

    id: str
    fence: int
    lost: threading.Event = field(default_factory=threading.Event)
    """Somebody else may have the row now: stop, and write nothing."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """The run was ended: bring the work to an end and report it."""

    def lose(self) -> None:
        """Somebody else may have the row now."""
        self.lost.set()
        self.cancelled.set()


class _Heartbeat:
    """One per process, started with its first lease (so after any fork)."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.held: dict[tuple[str, int], Lease] = {}
        self.telling: dict[str, Callable[[], None]] = {}
        self.lag = 0.0
        self.woke = time.monotonic()
        self._renew(lease_clock.now())
        threading.Thread(target=self._beat, name="leases", daemon=True).start()

    def _beat(self) -> None:
        while True:
            self.woke = time.monotonic()
            time.sleep(settings().watch_seconds)
            self.lag = time.monotonic() - self.woke - settings().watch_seconds
            if self.held:
                self._tick()
            else:
                self._renew(lease_clock.now())

    def _renew(self, at: float) -> None:
        """Note that all leases were renewed at `at`; with none held, there is none to renew."""
        self.renewed = at
        lease_clock.extend(at + settings().lease_seconds)

    @property
    def late(self) -> float:
        """Seconds by which the thread woke too late the last time, or is too late now."""
        return max(self.lag, time.monotonic() - self.woke - settings().watch_seconds)

    def _tick(self) -> None:
        held = dict(self.held)
        started = lease_clock.now()  # before the statement, so that no lease ends earlier than this process believes
        due = started - self.renewed >= settings().heartbeat_seconds
        try:
            still = (lease.renew if due else lease.look)(held)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next tick tries again: without this thread all leases lapse
            log.warning("leases: not renewed (%s)", type(error).__name__)
            if started - self.renewed > settings().lease_seconds:
                for one in held.values():
                    one.lose()
            return
        if due:
            self._renew(started)
        for tell in list(self.telling.values()) if due else ():
            tell()
        for key, one in held.items():
            if key[0] not in still:
                one.lose()
            elif still[key[0]]:
                one.cancelled.set()


_heartbeat: _Heartbeat | None = None
_starting = threading.Lock()


def _here() -> _Heartbeat:
    global _heartbeat  # noqa: PLW0603 - one per process, made anew after a fork
    with _starting:
        if _heartbeat is None or _heartbeat.pid != os.getpid():
            _heartbeat = _Heartbeat()
        return _heartbeat


def worker() -> str:
    """This process, as rows and people know it: its machine and its pid."""
    return f"{socket.gethostname()}:{os.getpid()}"


@contextmanager
def hold(row_id: str, fence: int) -> Iterator[Lease]:
    """Keep the lease on a claimed row until the block ends."""
    one = Lease(row_id, fence)
    held = _here().held
    held[(row_id, fence)] = one
    try:
        yield one
    finally:
        del held[(row_id, fence)]


@contextmanager
def telling(call: ToolCall, output: OutputSoFar) -> Iterator[None]:
    """With every heartbeat until the block ends, keep what a call has printed: it is all that is known if its worker dies."""
    said: list[str] = []

    def tell() -> None:
        now = "".join(output.texts().values())
        if now and said[-1:] != [now]:
            try:
                Attempt.say(call.workspace_id, call.id, call.attempt, now[-TOLD_CHARACTERS:])
            except Exception as error:  # noqa: BLE001 - the leases matter more
                log.warning("call %s: its output so far is not kept (%s)", call.id, type(error).__name__)
                return
            said[:] = [now]

    telling = _here().telling
    telling[call.id] = tell
    try:
        yield
    finally:
        telling.pop(call.id, None)


def ready(patience: float = 5) -> bool:
    """Whether this process may claim something new. If it is too busy it has `patience` seconds to calm down; when it has not, the
    row stays queued, and is hinted again."""
    until = time.monotonic() + patience
    while _busy():
        if time.monotonic() > until:
            return False
        time.sleep(random.uniform(0.1, 0.5))  # noqa: S311 - only so that not all wake at once
    return True


def _busy() -> bool:
    heartbeat = _here()
    return heartbeat.late > settings().max_lag_seconds or len(heartbeat.held) >= settings().turns_in_flight
