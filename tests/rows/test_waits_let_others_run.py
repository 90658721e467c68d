"""Under gevent, a statement that waits in Postgres does not stop the other greenlets of the process."""

import json
from typing import Any

import warm
from rows.stage import Stage

HEAD = """
from gevent import monkey
monkey.patch_all()
import json, sys
import gevent
from gevent.event import Event
from models.database.exchange import Statement
from models.database.transactions import transaction

workspace_id = sys.argv[1]
LOCK = Statement("SELECT pg_advisory_xact_lock(36)", {})
WAITERS = Statement("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", {})
HELD, order = Event(), []
"""

TWO_GREENLETS = """
def hold():
    with transaction(workspace_id) as db:
        db.read(LOCK)
        HELD.set()
        while not db.read(WAITERS)[0][0][0]:
            gevent.sleep(0)
        order.append("holder")

def wait():
    HELD.wait()
    with transaction(workspace_id) as db:
        db.read(LOCK, Statement("SELECT 1", {}))
        order.append("waiter")

gevent.joinall([gevent.spawn(wait), gevent.spawn(hold)], raise_error=True)
print(json.dumps(order))
"""

A_KILL = """
from models.settings import settings

CHANGE = Statement("SELECT set_config('assent.workspace', 'elsewhere', true)", {})
WHERE = Statement("SELECT current_setting('assent.workspace'), id FROM workspace", {})

def wait():
    with transaction(workspace_id) as db:
        db.write(CHANGE.sql)
        db.read(LOCK)

with transaction(workspace_id) as db:
    db.read(LOCK)
    waiters = [gevent.spawn(wait) for _ in range(settings().database_pool_size - 1)]
    while db.read(WAITERS)[0][0][0] < len(waiters):
        gevent.sleep(0)
    gevent.killall(waiters)
ends = [repr(waiter.value) for waiter in waiters]

def look():
    with transaction(workspace_id) as db:
        return db.read(WHERE)[0]

after = gevent.joinall([gevent.spawn(look) for _ in range(settings().database_pool_size)], raise_error=True)
print(json.dumps([sorted(set(ends)), [list(map(list, each.value)) for each in after]]))
"""


def output_of(program: str, stage: Stage) -> Any:
    result = warm.run("-c", HEAD + program, stage.workspace_id)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_greenlet_that_waits_for_a_lock_lets_its_holder_run(stage: Stage) -> None:
    assert output_of(TWO_GREENLETS, stage) == ["holder", "waiter"]


def test_greenlets_killed_in_an_exchange_leave_no_state_on_pooled_connections(stage: Stage) -> None:
    ends, after = output_of(A_KILL, stage)
    assert ends == ["GreenletExit()"]
    assert {tuple(row) for rows in after for row in rows} == {(stage.workspace_id, stage.workspace_id)}
