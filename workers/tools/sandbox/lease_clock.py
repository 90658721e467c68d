"""Until when the leases of this process hold, by this machine's clock.

The heartbeat moves the time on with each renewal. Whatever begins an effect looks at it right before, and the programs that keep
a tool's processes are told it: they end these when it passes, even if the worker is frozen. These programs load this module, too.
"""

from __future__ import annotations

import math
import os
import struct
import time

TYPE_CHECKING = False  # the keeper loads this: few imports
if TYPE_CHECKING:
    from collections.abc import Callable

_TIME = struct.Struct("=d")

_until = math.inf
"""In a process without a heartbeat, such as the command line, there are no leases that could run out."""


def _nobody(_until: float) -> None:
    """Nobody has to be told."""


_tell: Callable[[float], object] = _nobody


def now() -> float:
    """Seconds by a clock that all processes of this machine share and nobody sets; where there is one, it counts suspension."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def extend(until: float) -> None:
    """The leases hold until then."""
    global _until  # noqa: PLW0603 - one heartbeat per process
    _until = until
    _tell(until)


def tell(teller: Callable[[float], object]) -> None:
    """Have `teller` called with each new end of the leases, in this process and not in its forks."""
    global _tell  # noqa: PLW0603 - one sentinel per process
    _tell = teller


def until() -> float:
    """When the leases run out unless they are renewed."""
    return _until


def lapsed() -> bool:
    """True if the leases have run out: others may work on their rows by now."""
    return now() >= _until


class Lease:
    """The leases of the worker, as one of its keepers knows them: by what comes through a pipe, at whose end is the worker."""

    def __init__(self, pipe: int, until: float) -> None:
        self._pipe = pipe
        self.until = until

    @property
    def lapsed(self) -> bool:
        """True if they have run out: another worker may run the same calls by now."""
        return now() >= self.until

    def hear(self) -> str | None:
        """Take one message: `cancelled`, `orphaned` if the worker is dead, or None for a renewed lease."""
        said = os.read(self._pipe, 1)
        if said == b"l":
            (self.until,) = _TIME.unpack(os.read(self._pipe, _TIME.size))
            return None
        return "cancelled" if said else "orphaned"


def renewed(until: float) -> bytes:
    """The message for keepers that the leases hold until then; `math.inf`: there are none."""
    return b"l" + _TIME.pack(until)


def _forget() -> None:
    """In a fork: the leases and the sentinel are the parent's."""
    tell(_nobody)
    extend(math.inf)


os.register_at_fork(after_in_child=_forget)
