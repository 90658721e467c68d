"""The end of this process's leases, and the sentinel that kills the tools' processes when it passes.

Each heartbeat moves the end. Code checks it right before an effect. The sentinel receives each new end, so that it acts even if
this process is frozen. A keeper cannot do that: whoever stops a worker's process tree stops the keepers, too.
"""

import contextlib
import errno
import math
import os
import secrets
import subprocess
import sys
import threading

from workers.leash.programs.clock import MESSAGE, now
from workers.leash.start import environment, program

__all__ = ["LAPSED", "extend", "lapsed", "mark", "now", "until"]

LAPSED = "its worker did not renew its lease in time, so that others may have the call by now"
"""Why a call did not begin, or was killed: for the model and the person."""


class _Guard:
    """The end of the leases of this process, and its sentinel."""

    def __init__(self) -> None:
        self.until = math.inf
        """A process without a heartbeat, such as the command line, has no leases that could end."""
        self.mark = f"assent-{secrets.token_hex(8)}"
        """The same for each sentinel of this process: keepers and launchers have the mark in their command lines."""
        self._pipe: int | None = None
        self._lock = threading.Lock()

    def ensure(self) -> None:
        """Start the sentinel unless it runs. Raises OSError."""
        with self._lock:
            if not self._send():
                self._start()
                self._send()

    def extend(self, until: float) -> None:
        """Move the end, and send it to the sentinel. Starts another sentinel if somebody killed it."""
        self.until = until
        with self._lock, contextlib.suppress(OSError):  # the next call tries again
            if self._pipe is not None and not self._send():
                self._start()
                self._send()

    def forget(self) -> None:
        """Leave the sentinel to the process that started it."""
        if self._pipe is not None:
            os.close(self._pipe)

    def _send(self) -> bool:
        """Send the end of the leases; False if no sentinel runs."""
        if self._pipe is None:
            return False
        try:
            os.write(self._pipe, MESSAGE.pack(self.until))
        except BlockingIOError:  # the sentinel is stopped: the heartbeat must not wait
            return True
        except BrokenPipeError:
            os.close(self._pipe)
            self._pipe = None
        return self._pipe is not None

    def _start(self) -> None:
        sentinel_end, worker_end = os.pipe()
        try:
            sentinel_start = subprocess.run(  # noqa: S603 - Assent's own program, which forks and exits at once
                program("sentinel", self.mark),
                stdin=sentinel_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(),
                cwd="/",
                start_new_session=True,
                check=False,
            )
            if sentinel_start.returncode:
                raise OSError(errno.EAGAIN, "the sentinel could not be started")
        except BaseException:
            os.close(worker_end)
            raise
        finally:
            os.close(sentinel_end)
        os.set_blocking(worker_end, False)
        self._pipe = worker_end


_guard = _Guard()


def extend(until: float) -> None:
    """Move the end of the leases, by the clock of `now`."""
    _guard.extend(until)


def until() -> float:
    """Return the end of the leases, unless a heartbeat moves it; `math.inf` for no leases."""
    return _guard.until


def lapsed() -> bool:
    """Return True if the leases have ended: other workers may run the same calls."""
    return now() >= _guard.until


def mark() -> str:
    """Return the argument by which this process's sentinel finds keepers and launchers. Starts the sentinel unless it runs.

    There is a sentinel only on Linux, whose /proc lists the processes. Raises OSError.
    """
    if sys.platform == "linux":
        _guard.ensure()
    return _guard.mark


def _forget() -> None:
    global _guard  # noqa: PLW0603 - one per process: in a fork, the leases and the sentinel belong to the parent
    _guard.forget()
    _guard = _Guard()


os.register_at_fork(after_in_child=_forget)
