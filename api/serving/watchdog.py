"""Ends a request that takes too much CPU time from the process that serves all others.

All requests of a process share its main thread. A timer of the process's CPU time interrupts the thread every `TICK_SECONDS`. The
time since the last tick counts for the request that is running. Beyond the setting `request_cpu_seconds` the tick raises `Costly`
in this request. The error cannot end a step that runs in C. It waits while the request has a transaction open, and then as long as
a response takes, so that a client learns of an effect that was committed.
"""

import logging
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import g, has_request_context, request
from gevent import getcurrent
from werkzeug.wsgi import ClosingIterator

from models.database import transactions
from models.errors import Costly
from models.settings import settings

log = logging.getLogger("assent.api")

TICK_SECONDS = 0.05
_GRACE_SECONDS = 0.25
"""CPU time for a response: after a transaction, and to a request that was ended. Then the error is raised, or raised again."""

App = Callable[[dict[str, Any], Any], Iterable[bytes]]
"""A WSGI application."""


@dataclass(eq=False)
class _Work:
    """The CPU time of one request, and of each piece of a response that is a stream."""

    limit: float
    busy_seconds: float = 0
    responds_until: float = 0
    """The time at which the error is raised, if that is later than the limit."""
    is_named: bool = False

    def restarted(self, piece: bytes) -> bytes:
        """Return the finished piece of a response. The next piece may take as long."""
        self.busy_seconds = self.responds_until = 0
        return piece


_works: dict[Any, _Work] = {}
"""The requests of this process, by their greenlet."""
_last_tick = 0.0
"""The CPU time of the main thread at the last tick."""


def watched(app: App) -> App:
    """Return the WSGI application with its requests watched."""

    def watch(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        greenlet = getcurrent()
        work = _works[greenlet] = _Work(settings().request_cpu_seconds)
        end: Callable[[], object] = partial(_works.pop, greenlet, None)
        try:
            pieces = app(environ, start_response)
        except BaseException:
            end()
            raise
        return ClosingIterator(map(work.restarted, pieces), [*_closing(pieces), end])  # type: ignore[list-item]

    return watch


def _closing(pieces: Iterable[bytes]) -> list[Callable[[], object]]:
    return [pieces.close] if hasattr(pieces, "close") else []


def start() -> None:
    """Start the timer. Call it in the process's main thread."""
    global _last_tick  # noqa: PLW0603 - the process has one main thread
    _last_tick = time.thread_time()
    signal.signal(signal.SIGPROF, _tick)
    signal.siginterrupt(signal.SIGPROF, False)
    signal.setitimer(signal.ITIMER_PROF, TICK_SECONDS, TICK_SECONDS)


def stop() -> None:
    """Stop the timer. Without its handler, the signal would kill the process."""
    signal.setitimer(signal.ITIMER_PROF, 0)


def _tick(_signal: int, _frame: object) -> None:
    """Count the time since the last tick for the running request. Raises Costly in this request if it has no more time."""
    global _last_tick
    now = time.thread_time()
    elapsed, _last_tick = now - _last_tick, now
    work = _works.get(getcurrent())
    if work is None:
        return
    work.busy_seconds += elapsed
    if work.busy_seconds > work.limit and not work.is_named:
        work.is_named = True
        log.warning("%s", _name())
    if transactions.is_open():
        work.responds_until = work.busy_seconds + _GRACE_SECONDS
    elif work.busy_seconds > max(work.limit, work.responds_until):
        work.responds_until = work.busy_seconds + _GRACE_SECONDS
        raise Costly(settings().request_cpu_seconds)


def _name() -> str:
    """Return the words that name the running request in the log. None is content: a path may hold a secret."""
    seconds = f"took more than {settings().request_cpu_seconds:g} s of CPU time"
    if not has_request_context():
        return f"A stream {seconds}"
    return f"{g.get('request_id')} {seconds} ({request.method} {request.url_rule}, by {g.get('principal', 'nobody known')})"
