"""Tools workers say which toolsets they have: at their start, and again and again while they live.

A worker's main process forks, so it stays without threads that do anything: a program of its own announces, until its standard
input ends, which is when the worker has died. The worker itself only takes on the queues of its toolsets.
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

log = logging.getLogger(__name__)

PROGRAM = (sys.executable, "-m", __name__)
"""What announces."""
AGAIN_SECONDS = 5
"""Until a program that ended is started again."""


@celeryd_after_setup.connect
def announce(instance: Any, **_: Any) -> None:
    """Before the pool of a worker that runs tools starts: take on the queues of its toolsets, and have them announced."""
    queues = instance.app.amqp.queues
    if "tools" not in queues.consume_from:
        return
    for problem in sources.described()[1]:
        log.error("%s", problem)
    for name in sources.queues():
        queues.select_add(name)
    sources.preload()
    threading.Thread(target=_keep_announcing, name="announcing", daemon=True).start()


def _keep_announcing() -> None:
    while True:
        with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE) as program:  # noqa: S603 - our own program
            code = program.wait()
        log.warning("the announcing of toolsets ended (%s): started again", code)
        time.sleep(AGAIN_SECONDS)


def main() -> None:
    """Announce until standard input ends. What MCP servers have is asked again each time, as it may have changed."""
    told: dict[str, list[dict[str, Any]]] = {}
    while True:
        try:
            now: dict[str, list[dict[str, Any]]] = {}
            for ask in (sources.at_hand, sources.listed):  # an MCP server that keeps us waiting holds up no toolset
                have = ask()
                toolset.announce({name: tools for name, tools in have.items() if told.get(name) != tools})
                toolset.announce({name: tools for name, tools in have.items() if told.get(name) == tools}, only_seen=True)
                now |= have
            told = now
        except Exception as error:  # noqa: BLE001 - the database may be away: the next round says it
            log.warning("toolsets are not announced now (%s)", type(error).__name__)
        if select.select([0], [], [], settings().announce_seconds)[0] and not os.read(0, 1):
            return


if __name__ == "__main__":
    main()
