"""Runs one MCP server: `python -I -S launcher.py PARENT FOLDER MARK command ...`.

The server has this program's standard streams. The SDK's client ends only the server's process group. This program ends all
descendants of the server, also those with a session of their own: when the server exits, when the SDK sends SIGTERM, and when
the worker (PARENT) dies. The worker's sentinel finds this process by MARK, and kills its descendants when the worker's lease ends.
FOLDER holds `keeper.py`.

Remove this program once `tests/mcp_servers/test_servers_die_with_their_worker.py` passes without it.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from workers.tools.sandbox import keeper
elif __name__ == "__main__":
    sys.path.append(sys.argv[2])
    import keeper


def main() -> None:
    parent, words = int(sys.argv[1]), sys.argv[4:]
    # Orphans below become children of this process, so that none is out of reach.
    if not keeper.prctl(keeper.SET_SUBREAPER, 1):
        return
    order = {"argv": words, "env": dict(os.environ), "cwd": ".", "fds": (0,), "files": {}, "limits": {}}
    server = keeper.start({**order, "sandboxed": True, "until": math.inf})  # may raise its privileges, as the operator says
    for ignored in (signal.SIGINT, signal.SIGHUP):  # the worker decides when the server ends
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):  # only the server may hold the pipes: their end of file says that the server closed them
        os.dup2(nothing, fd)
    try:
        while os.getppid() == parent and not keeper.has_exited(server):
            time.sleep(keeper.ORPHANS_SECONDS)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        keeper.end_all(server)


if __name__ == "__main__":
    try:
        main()
    finally:
        os._exit(0)  # the interpreter's normal exit takes as long as its start
