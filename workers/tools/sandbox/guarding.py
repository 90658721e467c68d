"""The worker's side of the sentinel: one for each process that starts tools, told of each renewal of its leases."""

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
        """Stays the same if the sentinel has to be started again: keepers have it in their command lines."""
        self._pipe: int | None = None
        self._lock = threading.Lock()

    def ensure(self) -> None:
        """Start the sentinel unless it runs. Errors: OSError."""
        lease_clock.tell(self.renew)
        with self._lock:
            if not self._write(lease_clock.until()):
                self._start()
                self._write(lease_clock.until())

    def renew(self, until: float) -> None:
        """Tell the sentinel until when the leases hold."""
        with self._lock:
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
            os.write(self._pipe, lease_clock.renewed(until))
        except BlockingIOError:  # a stopped sentinel: the heartbeat must not wait for it
            return True
        except BrokenPipeError:
            os.close(self._pipe)
            self._pipe = None
        return self._pipe is not None

    def _start(self) -> None:
        theirs, ours = os.pipe()
        try:
            started = subprocess.run(  # noqa: S603 - our own program; it forks and leaves at once
                python(_SENTINEL, self.mark),
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(),
                cwd="/",
                start_new_session=True,
                check=False,
            )
            if started.returncode:
                raise OSError(errno.EAGAIN, "the sentinel could not be started")
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(ours, False)
        self._pipe = ours


_guard = _Guard()


def mark() -> str:
    """The argument by which the sentinel of this process knows keepers and launchers. Starts the sentinel unless it runs.

    Errors: OSError. Only Linux has a /proc in which a sentinel could find processes; elsewhere there is none.
    """
    if sys.platform == "linux":
        _guard.ensure()
    return _guard.mark


def _forget() -> None:
    global _guard  # noqa: PLW0603 - one per process
    _guard.forget()
    _guard = _Guard()


os.register_at_fork(after_in_child=_forget)
