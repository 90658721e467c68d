"""What each process of ours does once it has started up, so that it spends its time on its work."""

import gc
import select
from typing import Any

YOUNG = 10_000
"""Objects made and not yet freed, after which Python looks for garbage among them. Its own 700 is a fraction of one turn's."""


def started() -> None:
    """What exists by now stays for good, and a look that does not wait needs no event loop."""
    _leave_what_stays()
    _look_at_once()


def _leave_what_stays() -> None:
    """Left alone, Python's collector went through all of it again and again: 7 % of a worker's time, and with each full collection
    every turn of the process stood still for a tenth of a second."""
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)


def _look_at_once() -> None:
    """Redis and HTTP connections are looked at before each use by a poll that does not wait. gevent's own takes fifty times as long
    as the system's, which can do no harm there."""
    from gevent.monkey import get_original, is_module_patched

    if not is_module_patched("select"):
        return
    at_once, in_turn = get_original("select", "poll"), select.poll

    class Poll:
        """Asks the system or gevent, by what it is asked: each look is a poll of its own."""

        def __init__(self) -> None:
            self._watched: dict[int, tuple[int, ...]] = {}

        def register(self, fd: Any, *events: int) -> None:
            self._watched[_number(fd)] = events

        modify = register

        def unregister(self, fd: Any) -> None:
            del self._watched[_number(fd)]

        def poll(self, timeout: float | None = None) -> Any:
            asked = at_once() if timeout == 0 else in_turn()
            for fd, events in self._watched.items():
                asked.register(fd, *events)
            return asked.poll(timeout)

    select.poll = Poll  # type: ignore[misc,assignment]


def _number(fd: Any) -> int:
    number: int = fd if isinstance(fd, int) else fd.fileno()
    return number
