"""Runs one command that other code starts and ends: `start.program("launcher", PARENT, MARK, command, ...)`.

The command has this program's standard streams. Other code, such as the MCP SDK's client, ends only a command's process group.
This program ends all descendants of the command, also those with a session of their own: when the command exits, after SIGTERM,
and when the worker (PARENT) dies. The worker's sentinel finds this process by MARK, and kills its descendants when the worker's
lease ends.

Remove this program once `tests/mcp_servers/test_servers_die_with_their_worker.py` passes without it.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time

from . import keeper


def main() -> None:
    parent, words = int(sys.argv[1]), sys.argv[3:]
    # Orphans below become children of this process, so that none is out of reach.
    if not keeper.prctl(keeper.SET_SUBREAPER, 1):
        return
    order = {"argv": words, "env": dict(os.environ), "cwd": ".", "limits": {}}
    keeper.hold_signals()
    command = keeper.start({**order, "sandboxed": True, "until": math.inf}, {})  # may raise its privileges, as the operator says
    for number in (signal.SIGINT, signal.SIGHUP):  # the worker decides when the command ends
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):  # only the command may hold the pipes: their end of file says that the command closed them
        os.dup2(nothing, fd)
    try:
        while os.getppid() == parent and not keeper.has_exited(command):
            time.sleep(keeper.ORPHANS_SECONDS)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        keeper.end_all(command)
