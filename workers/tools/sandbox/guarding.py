"""The worker's side of the sentinel: starts one for each process that runs tools, and sends it each new end of the leases.

It keeps the promise that a tool ends with its worker's lease. A keeper cannot keep this promise: whoever stops the worker's process
tree stops the keepers, too.
"""

import contextlib
import errno
import os
import secrets
import subprocess
import sys
import threading

from workers.tools.sandbox import lease_clock, sentinel
from workers.tools.sandbox.interpreter import compiled, environment, python

_SENTINEL = compiled(sentinel.__file__)


class _Guard:
    """The sentinel of this process."""

    def __init__(self) -> None:
        self.mark = f"assent-{secrets.token_hex(8)}"
        """The same for each sentinel of this process: keepers have the mark in their command lines."""
        self._pipe: int | None = None
        self._lock = threading.Lock()

    def ensure(self) -> None:
        """Start the sentinel unless it runs. Errors: OSError."""
        lease_clock.on_extend(self.renew)
        with self._lock:
            if not self._write(lease_clock.until()):
                self._start()
                self._write(lease_clock.until())

    def renew(self, until: float) -> None:
        """Send the sentinel the new end of the leases. Starts another sentinel if somebody killed it."""
        with self._lock, contextlib.suppress(OSError):  # the next call tries again
            if self._pipe is not None and not self._write(until):
                self._start()
                self._write(until)

    def forget(self) -> None:
        """In a fork: leave the sentinel to the process that started it."""
        if self._pipe is not None:
            os.close(self._pipe)

    def _write(self, until: float) -> bool:
        """False if no sentinel runs."""
        if self._pipe is None:
            return False
        try:
            os.write(self._pipe, lease_clock.MESSAGE.pack(until))
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
                python(_SENTINEL, self.mark),
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


def mark() -> str:
    """The argument by which this process's sentinel finds keepers and launchers. Starts the sentinel unless it runs.

    Errors: OSError. There is a sentinel only on Linux, whose /proc lists the processes.
    """
    if sys.platform == "linux":
        _guard.ensure()
    return _guard.mark


def _forget() -> None:
    global _guard  # noqa: PLW0603 - one per process
    _guard.forget()
    _guard = _Guard()


os.register_at_fork(after_in_child=_forget)
