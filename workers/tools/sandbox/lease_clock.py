"""The end of this process's leases, by this machine's clock.

Each heartbeat moves the end. Code checks it right before an effect. The sentinel receives each new end and kills the tools'
processes when it passes, even if the worker is frozen. Keepers and the sentinel load this module, too.
"""

from __future__ import annotations

import math
import os
import struct
import time

TYPE_CHECKING = False  # the keeper loads this: few imports
if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGE = struct.Struct("=d")
"""A new end of the leases, as the worker sends it to its sentinel; `math.inf` for no leases."""

LAPSED = "its worker did not renew its lease in time, so that others may have the call by now"
"""Why a call did not begin, or was killed: for the model and the person."""

_until = math.inf
"""A process without a heartbeat, such as the command line, has no leases that could end."""

_notify: Callable[[float], object] | None = None
"""Sends a new end to the sentinel; None if no sentinel runs."""


def now() -> float:
    """Seconds by a monotonic clock that all processes of this machine share. On Linux it also counts suspension."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def extend(until: float) -> None:
    """Move the end of the leases."""
    global _until  # noqa: PLW0603 - one heartbeat per process
    _until = until
    if _notify:
        _notify(until)


def on_extend(notify: Callable[[float], object] | None) -> None:
    """Call `notify` with each new end of the leases, in this process and not in its forks."""
    global _notify  # noqa: PLW0603 - one sentinel per process
    _notify = notify


def until() -> float:
    """The end of the leases, unless a heartbeat moves it."""
    return _until


def lapsed() -> bool:
    """True if the leases have ended: other workers may run the same calls."""
    return now() >= _until


def _forget() -> None:
    """In a fork: the leases and the sentinel belong to the parent."""
    on_extend(None)
    extend(math.inf)


os.register_at_fork(after_in_child=_forget)
