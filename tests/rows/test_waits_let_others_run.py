"""Where gevent has taken the place of threads, a statement that waits in Postgres holds up nobody else of the process."""

import json
import subprocess
import sys

from rows.stage import Stage

TWO_GREENLETS = """
from gevent import monkey
monkey.patch_all()
import json, sys
import gevent
from gevent.event import Event
from models.driver import Cooperating
from models.db import transaction
from models.pipeline import Statement, ask

workspace_id = sys.argv[1]
LOCK = Statement("SELECT pg_advisory_xact_lock(36)", {})
WAITERS = Statement("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", {})
HELD, order = Event(), []

def hold():
    with transaction(workspace_id) as db:
        assert isinstance(db.connection().connection.driver_connection, Cooperating)
        ask(db, LOCK)
        HELD.set()
        while not ask(db, WAITERS)[0][0][0]:
            gevent.sleep(0)
    order.append("holder")

def wait():
    HELD.wait()
    with transaction(workspace_id) as db:
        ask(db, LOCK, Statement("SELECT 1", {}))
        order.append("waiter")

gevent.joinall([gevent.spawn(wait), gevent.spawn(hold)], raise_error=True)
print(json.dumps(order))
"""


def test_a_greenlet_that_waits_for_a_lock_lets_the_holder_go_on(stage: Stage) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_GREENLETS, stage.workspace_id], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["holder", "waiter"]
