"""The clock of the leases, which the worker, its keepers and its sentinel share."""

from __future__ import annotations

import struct
import time

MESSAGE = struct.Struct("=d")
"""A new end of the leases, as the worker sends it to its sentinel; `math.inf` for no leases."""


def now() -> float:
    """Return the seconds of a monotonic clock that all processes of this machine share. On Linux it also counts suspension."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
