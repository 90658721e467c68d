"""The sweeps that look: figures are added up, alarms are raised, broken sessions are found."""

import time

from models.operate import floods, late_sums
from models.operate.doctor import sessions as doctor
from models.operate.failing import isolated
from models.operate.metrics import adding_up
from workers.celery import app
from workers.outcome import MOST_SECONDS, Sweep, did, tally


@app.task(name="sweep.report")
def report() -> str:
    """Say that the sweeps of this process run: how many since its last report. The one task of a minute without work in Flower."""
    return tally.report()


@app.task(name="sweep.add_up_metrics", base=Sweep)
def add_up_metrics() -> str:
    """Add up the rows that metrics count, up to a minute ago. Returns no words: with any work there is something to add up."""
    adding_up.add_up(MOST_SECONDS)
    return ""


@app.task(name="sweep.add_up_uses", base=Sweep)
def add_up_uses() -> str:
    """Sum the usage of the days, and the uses of grants. Returns no words, as `add_up_metrics`."""
    until = time.monotonic() + MOST_SECONDS
    workspaces = late_sums.workspaces()
    while workspaces and time.monotonic() < until:
        workspaces = [workspace_id for workspace_id in workspaces if _has_more(workspace_id)]
    return ""


def _has_more(workspace_id: str) -> bool:
    """Sum one batch. Returns False once nothing is left, or after an error."""
    with isolated("add_up_uses", workspace_id, workspace_id):
        if late_sums.add_up(workspace_id):
            return True
    return False


@app.task(name="sweep.watch_waiting_lists", base=Sweep)
def watch_waiting_lists() -> str:
    """Raise the alarm for people for whom too many approvals wait, and end it."""
    changes = 0
    for workspace_id in floods.to_watch():
        with isolated("watch_waiting_lists", workspace_id, workspace_id):
            changes += floods.watch(workspace_id)
    floods.publish()
    return did("floods of waiting lists began or ended:", changes)


_look = doctor.Look()


@app.task(name="sweep.check_sessions", base=Sweep)
def check_sessions() -> str:
    """Find sessions that go on by nothing, among those with acts since the last look. The log and `/readyz` name them."""
    return did("found broken sessions:", _look.run(MOST_SECONDS / 2))
