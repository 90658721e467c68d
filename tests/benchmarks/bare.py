"""The hops of a gated cycle with nothing in them: turn, tool, turn. On the same Celery app, workers and queues as Assent's own.

Imported by the workers of a benchmark; `benchmarks.floors` sends the first and the second.
"""

import time

from benchmarks.marks import say

from workers.celery import app


@app.task(name="turn.bare")
def turn(cycle_id: str, last: bool) -> None:
    """Where a model would be asked."""
    say("D" if last else "P", cycle_id)


@app.task(name="tool.bare")
def tool(cycle_id: str) -> None:
    """Where a tool would run."""
    say("T", cycle_id)
    app.send_task("turn.bare", (cycle_id, True), ignore_result=True, retry=False)


@app.task(name="tool.nap")
def nap(cycle_id: str, seconds: float) -> None:
    """A tool that takes so long, with nothing around it."""
    time.sleep(seconds)
    say("N", cycle_id)
