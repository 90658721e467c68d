"""Connections for processes where gevent has taken the place of threads: they look before they let others run.

There psycopg hands every wait to gevent's loop, even for room in a socket that has room: a fifth of what a statement costs.
"""

import select
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from gevent.monkey import get_original, is_module_patched
from psycopg.waiting import Ready, Wait

T = TypeVar("T")
Steps = Generator[Wait, Ready | int, T]

_poll = get_original("select", "poll")
# As plain numbers, since enumerations are slow to reckon with.
_EVENTS = {int(Wait.R): select.POLLIN, int(Wait.W): select.POLLOUT, int(Wait.RW): select.POLLIN | select.POLLOUT}
_READY = {0: 0, select.POLLIN: int(Ready.R), select.POLLOUT: int(Ready.W), select.POLLIN | select.POLLOUT: int(Ready.RW)}
_BOTH = select.POLLIN | select.POLLOUT
_INTERVAL = 0.1
"""Seconds after which a wait looks whether it was interrupted; psycopg's own."""


def kind() -> "type[psycopg.Connection[Any]]":
    """Which connections this process should have."""
    return Cooperating if is_module_patched("select") else psycopg.Connection


class Cooperating(psycopg.Connection[Any]):
    """A connection whose waits begin with a look that takes no time."""

    def wait(self, gen: Steps[T], interval: float = _INTERVAL, timeout: float | None = None) -> T:
        """Go through the steps of an exchange with the server, as far as they go at once; then as psycopg does."""
        try:
            wanted = next(gen)
            while ready := self._ready(wanted):
                wanted = gen.send(ready)
        except StopIteration as done:
            result: T = done.value
            return result
        return super().wait(_rest(gen, wanted), interval, timeout)

    def _ready(self, wanted: int) -> int:
        """What of that is so already; nothing, too, if the socket is broken: psycopg will say how."""
        poll = _poll()
        poll.register(self.pgconn.socket, _EVENTS[wanted])
        return sum(_READY[found & _BOTH] for _, found in poll.poll(0))


def _rest(gen: Steps[T], wanted: Wait) -> Steps[T]:
    """The steps that are left, after what was wanted last."""
    while True:
        ready = yield wanted
        try:
            wanted = gen.send(ready)
        except StopIteration as done:
            result: T = done.value
            return result
