"""Starts one MCP server and ends all of it: a program of its own, `python -I -S launcher.py LEASH PARENT FOLDER MARK command ...`.

The server has our standard input, output and error. It ends, with everything that came of it, when it exits, when the worker
closes LEASH (a descriptor), when the worker does not renew there, as `lease_clock.Lease` hears it, the lease that it had, and when
the worker is dead: then the kernel closes LEASH, and sends SIGTERM besides, for the case that another process got a copy of it.
FOLDER is where `keeper.py` is. By MARK the worker's sentinel knows this process.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from typing import NoReturn

    from workers.tools.sandbox import keeper, lease_clock
else:
    sys.path.append(sys.argv[3])
    import keeper
    import lease_clock


def main() -> None:
    leash, parent, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[5:]
    os.set_inheritable(leash, False)
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    signal.signal(signal.SIGTERM, lambda *_: None)
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):  # the worker decides when it is over
        signal.signal(ignored, signal.SIG_IGN)
    # Orphans below become children of this process, so that none is out of reach.
    if not keeper.prctl(keeper.SET_SUBREAPER, 1):
        return
    keeper.prctl(keeper.SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return
    server = start(words)
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):  # left to the server: their end of file says that nobody holds them any more
        os.dup2(nothing, fd)
    try:
        watch(server, leash, told)
    finally:
        keeper.end_all(server)


def start(words: list[str]) -> int:
    """Fork and execute the server; its pid. A command that cannot be started exits with 127 and says why."""
    pid = os.fork()
    if pid == 0:
        try:
            become(words)
        except BaseException as error:  # noqa: BLE001 - this is the child: it must never return
            os.write(2, f"cannot start {words[0]}: {error}\n".encode())
        os._exit(127)
    return pid


def become(words: list[str]) -> NoReturn:
    """In the child: become the server."""
    signal.set_wakeup_fd(-1)
    keeper.prctl(keeper.SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(words[0], words)  # noqa: S606 - no shell between is what we want


def watch(server: int, leash: int, told: int) -> None:
    """Wait until the server has exited or is to end."""
    try:
        wanted, pause = [leash, told, os.pidfd_open(server)], keeper.ORPHANS_SECONDS
    except (AttributeError, OSError):  # macOS, an old kernel
        wanted, pause = [leash, told], 0.01
    lease = lease_clock.Lease(leash, math.inf)
    while not keeper.has_exited(server):
        ready = select.select(wanted, [], [], max(min(pause, lease.until - lease_clock.now()), 0))[0]
        if (leash in ready and lease.hear()) or told in ready or lease.lapsed:
            return


if __name__ == "__main__":
    try:
        main()
    finally:
        os._exit(0)  # the interpreter's own farewell takes as long as its start
