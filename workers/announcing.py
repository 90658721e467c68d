"""Tools workers announce their toolsets: at their start, and then every `announce_seconds`.

A worker's main process forks, and a fork copies no threads. So a separate program announces. The program ends at the end of its
standard input, which comes when the worker dies. The worker itself only subscribes to the queues of its toolsets.
"""

import logging
import os
import select
import subprocess
import sys
import threading
import time
from typing import Any

from celery.signals import celeryd_after_setup

from models.settings import settings
from models.workspace import toolset
from workers.tools import sources
from workers.tools.sandbox.bubblewrap import exposure

log = logging.getLogger(__name__)

PROGRAM = (sys.executable, "-m", __name__)
"""The command line of the program that announces."""
AGAIN_SECONDS = 5
"""The wait before a program that ended is started again."""


@celeryd_after_setup.connect
def announce(instance: Any, **_: Any) -> None:
    """Subscribe a tools worker to the queues of its toolsets, and start to announce them. Runs before the pool starts."""
    queues = instance.app.amqp.queues
    if "tools" not in queues.consume_from:
        return
    if warning := exposure():
        log.warning("%s", warning)
    for problem in sources.python_toolsets()[1]:
        log.error("%s", problem)
    for name in sources.queues():
        queues.select_add(name)
    sources.preload()
    threading.Thread(target=_keep_announcing, name="announcing", daemon=True).start()


def _keep_announcing() -> None:
    while True:
        with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE) as program:  # noqa: S603 - our own program
            code = program.wait()
        log.warning("the program that announces toolsets ended (%s) and starts again", code)
        time.sleep(AGAIN_SECONDS)


def main() -> None:
    """Announce until standard input ends. Each round asks MCP servers for their tools again, as these may have changed."""
    former: dict[str, list[dict[str, Any]]] = {}
    while True:
        try:
            current: dict[str, list[dict[str, Any]]] = {}
            for source in (sources.local_toolsets, sources.mcp_toolsets):  # a slow MCP server must not hold up the other toolsets
                toolsets = source()
                toolset.announce({name: tools for name, tools in toolsets.items() if former.get(name) != tools})
                toolset.announce({name: tools for name, tools in toolsets.items() if former.get(name) == tools}, only_seen=True)
                current |= toolsets
            former = current
        except Exception as error:  # noqa: BLE001 - the database may be away: the next round announces
            log.warning("toolsets could not be announced (%s); the next round tries again", type(error).__name__)
        if select.select([0], [], [], settings().announce_seconds)[0] and not os.read(0, 1):
            return


if __name__ == "__main__":
    main()
