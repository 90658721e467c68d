"""The keepers of this process, which keep one command after the other."""

import contextlib
import os
import socket
import subprocess
from typing import NamedTuple

from workers.leash import lease
from workers.leash.start import environment, program


class Keeper(NamedTuple):
    """A process that keeps commands."""

    process: "subprocess.Popen[bytes]"
    socket: socket.socket
    """For orders and reports. Its end tells each side that the other one is dead."""


# Threads change both without a lock, as each change is atomic.
_all: set[Keeper] = set()
_idle: list[Keeper] = []
"""The keepers without a command."""


def take() -> Keeper:
    """Return a keeper without a command, a new one if none is idle. Raises OSError."""
    mark = lease.mark()
    with contextlib.suppress(IndexError):
        while True:
            keeper = _idle.pop()
            if keeper.process.poll() is None:
                return keeper
            end(keeper, 0)
    keeper = _start(mark)
    _all.add(keeper)
    return keeper


def give_back(keeper: Keeper) -> None:
    """Keep a keeper for another command."""
    _idle.append(keeper)


def end(keeper: Keeper, seconds: float) -> None:
    """End a keeper, which first has so many seconds to end its command."""
    with contextlib.suppress(OSError):  # the keeper has ended
        keeper.socket.shutdown(socket.SHUT_WR)
    with contextlib.suppress(subprocess.TimeoutExpired):
        try:
            keeper.process.wait(seconds)
        except subprocess.TimeoutExpired:
            keeper.process.kill()
            keeper.process.wait(1)
    keeper.socket.close()
    _all.discard(keeper)


def _start(mark: str) -> Keeper:
    """Start a keeper. Raises OSError."""
    ours, theirs = socket.socketpair()
    try:
        process = subprocess.Popen(  # noqa: S603 - Assent's own program
            program("keeper", mark),
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return Keeper(process, ours)


def _forget() -> None:
    """Leave the keepers to the process that started them, in a fork."""
    for keeper in _all:
        keeper.socket.close()
        keeper.process.returncode = 0
    _all.clear()
    _idle.clear()


os.register_at_fork(after_in_child=_forget)
