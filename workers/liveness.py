"""Files that show to probes that this process is alive and ready. docs/operation.md explains the probes.

The loop in which the main thread takes its work calls `alive`. A loop that is stuck does not, whatever the reason. A loop that only
waits for Redis does: a silent Redis is not this process's fault.
"""

import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from models.settings import settings

_EVERY_SECONDS = 1.0
"""The least time between two renewals."""


class _Files:
    """The files of this process, before `begin` of none."""

    def __init__(self, *processes: str) -> None:
        self.pid = os.getpid()
        folder = settings().probe_folder
        self.alive = [folder / f"{name}.alive" for name in processes] if folder else []
        self.ready = [folder / f"{name}.ready" for name in processes] if folder else []
        self.renewed = 0.0


_files = _Files()


def begin(*processes: str) -> None:
    """Begin to renew the files of this process, by its names in the Procfile. Exits with one line if it cannot write them."""
    global _files  # noqa: PLW0603 - one per process
    _files = _Files(*processes)
    for path in _files.ready:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # of an earlier start
            path.with_suffix(".alive").unlink(missing_ok=True)
        except OSError as error:
            raise SystemExit(
                f"assent: ASSENT_PROBE_FOLDER: {path} cannot be written ({error.strerror}): name another folder"
            ) from None


def alive() -> None:
    """Renew the files, at most once a second, if this is the main thread of the process that called `begin`. Cheap."""
    if time.monotonic() - _files.renewed >= _EVERY_SECONDS and _is_main():
        _renew()


def connects() -> None:
    """Renew the files at an attempt to reach Redis, in any thread: Celery's loop may wait for a thread that waits for Redis."""
    if _files.pid == os.getpid():
        _renew()


def _renew() -> None:
    _files.renewed = time.monotonic()
    _touch(_files.alive)
    _notify("WATCHDOG=1")


def ready() -> None:
    """Report that this process takes work."""
    if _is_main():
        _touch(_files.ready)
        _notify("READY=1")


def _is_main() -> bool:
    """False in a fork, and in a thread, which would renew the files although the main loop is stuck."""
    return _files.pid == os.getpid() and threading.current_thread() is threading.main_thread()


def _touch(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):  # a full disk, for example: then the probe fails, and the work goes on
            path.touch()


def _notify(state: str) -> None:
    """Tell systemd, if this process is a service of the type `notify`."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
