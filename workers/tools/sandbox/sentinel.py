"""Kills what a worker's tools have started once the lease has ended: a program of its own, `python -I -S sentinel.py MARK`.

A keeper ends its command when the lease ends, but only while the keeper itself runs. If the whole process tree of a worker is
stopped (SIGSTOP), keepers and commands go on together at SIGCONT, and a command may be faster than its keeper. The sentinel is
outside of that tree: a child of init, in a session of its own. SIGKILL ends stopped processes, so nothing is left to go on.

Standard input comes from the worker: renewed leases, as `lease_clock.Lease` hears them. End of file means that the worker is dead.
The sentinel then kills the keepers, too, and ends. MARK is an argument in the command line of each of the worker's keepers and
launchers; everything below them is a tool's.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING or __package__:
    from workers.tools.sandbox import lease_clock, processes
else:
    # As the last place, so that nothing there stands in for the standard library.
    sys.path.append(os.path.dirname(__file__).removesuffix("/__pycache__"))  # noqa: PTH120 - pathlib is slow to import
    import lease_clock
    import processes

LOOK_SECONDS = 1.0
"""The longest wait between two looks at the clock: `select` does not count the time in which the machine was suspended."""
RETRY_SECONDS = 0.001
"""The first wait before processes are killed again: orphans of killed processes have another parent by then."""


def main() -> None:
    if os.fork():
        return  # the worker collects this process; its child belongs to init
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # the worker decides when it is over
        signal.signal(ignored, signal.SIG_IGN)
    mark, lease = os.fsencode(sys.argv[1]), lease_clock.Lease(0, math.inf)
    watch(mark, lease)
    end_all(mark)


def watch(mark: bytes, lease: lease_clock.Lease) -> None:
    """Kill what is below the marked processes whenever the lease has ended. Returns when the worker is dead."""
    retry = RETRY_SECONDS
    while hear(lease, retry if lease.lapsed else min(LOOK_SECONDS, lease.until - lease_clock.now())):
        if lease.lapsed:
            kill_below(mark)
            retry = min(2 * retry, LOOK_SECONDS)
        else:
            retry = RETRY_SECONDS


def hear(lease: lease_clock.Lease, seconds: float) -> bool:
    """Wait for messages and take all that have come. False if the worker is dead."""
    while select.select([0], [], [], max(seconds, 0))[0]:
        if lease.hear():
            return False
        seconds = 0
    return True


def kill_below(mark: bytes) -> bool:
    """Kill everything below the marked processes. False if nothing was alive there.

    The marked processes themselves stay: they tell the worker how their commands ended.
    """
    below = [(pid, parent) for pid, parent in processes.descendants(*processes.marked(mark)) if not processes.is_dead(pid)]
    for pid, parent in below:
        kill(pid, parent)
    return bool(below)


def end_all(mark: bytes) -> None:
    """Kill everything below the marked processes, and once nothing is alive there, the marked processes."""
    retry = RETRY_SECONDS
    while marked := processes.marked(mark):
        if not kill_below(mark):
            for pid in marked:
                kill(pid, processes.parent_of(pid))
        time.sleep(retry)
        retry = min(2 * retry, LOOK_SECONDS)


def kill(pid: int, parent: int) -> None:
    """Kill one process, unless it is gone or another user's."""
    try:  # noqa: SIM105 - contextlib is slow to import
        processes.send(pid, parent, signal.SIGKILL)
    except OSError:
        pass


if __name__ == "__main__":
    try:
        main()
    except OSError:
        os._exit(1)
    finally:
        os._exit(0)  # the interpreter's own farewell takes as long as its start
