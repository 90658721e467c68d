"""Kills the processes of a worker's tools when the lease ends: a program of its own, run by `start.program("sentinel", MARK)`.

It keeps the promise that a frozen worker has no effect after its lease. Any process in the worker's own tree may be stopped
together with the worker (SIGSTOP), and a command may be continued before that process. So the sentinel is outside of the tree: a
child of init, in a session of its own. SIGKILL ends stopped processes, so none goes on. There is a sentinel only on Linux.

Standard input comes from the worker: each `clock.MESSAGE` is a new end of the lease. End of file means that the worker is
dead. The sentinel then kills the keepers, too, and ends. MARK is an argument in the command line of each of the worker's keepers
and launchers, and all their descendants belong to tools.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time

from . import clock, processes

LOOK_SECONDS = 1.0
"""The longest wait between two looks at the clock: `select` does not count suspension of the machine."""
PIPE_BYTES = 1 << 16
"""More than a pipe holds: one read gets all messages."""
RETRY_SECONDS = 0.001
"""The first wait before the next round of kills: by then orphans of killed processes have another parent."""


def main() -> None:
    if os.fork():
        return  # the worker collects this process; its child belongs to init
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # only the worker's death ends a sentinel
        signal.signal(number, signal.SIG_IGN)
    mark = sys.argv[1]
    watch(mark)
    end_all(mark)


def watch(mark: str) -> None:
    """Kill the descendants of the marked processes whenever the lease has ended. Returns when the worker is dead."""
    until, pause = math.inf, RETRY_SECONDS
    while True:
        seconds = until - clock.now()
        if select.select([0], [], [], pause if seconds <= 0 else min(LOOK_SECONDS, seconds))[0]:
            messages = os.read(0, PIPE_BYTES)
            if not messages:
                return
            (until,) = clock.MESSAGE.unpack(messages[-clock.MESSAGE.size :])
        if clock.now() >= until:
            tools = below(mark)
            # What a worker begins after it renewed its lease may be among them. Its message is here by then.
            if not select.select([0], [], [], 0)[0]:
                kill_all(tools)
            pause = min(2 * pause, LOOK_SECONDS)
        else:
            pause = RETRY_SECONDS


def below(mark: str) -> list[tuple[int, int]]:
    """Return the living descendants of the keepers and launchers, with their parents.

    A command has the mark of its keeper or launcher until it is executed.
    """
    pids = processes.with_argument(os.fsencode(mark))
    tops = [pid for pid in pids if processes.parent_of(pid) not in pids]
    return [(pid, parent) for pid, parent in processes.descendants(*tops) if not processes.is_dead(pid)]


def end_all(mark: str) -> None:
    """Kill all descendants of the keepers and launchers, and then these themselves."""
    retry = RETRY_SECONDS
    while pids := processes.with_argument(os.fsencode(mark)):
        kill_all(below(mark) or [(pid, processes.parent_of(pid)) for pid in pids])
        time.sleep(retry)
        retry = min(2 * retry, LOOK_SECONDS)


def kill_all(pids: list[tuple[int, int]]) -> None:
    """Kill these processes, given with their parents, but for those that are gone or another user's."""
    for pid, parent in pids:
        try:  # noqa: SIM105 - contextlib is slow to import
            processes.send(pid, parent, signal.SIGKILL)
        except OSError:
            pass
