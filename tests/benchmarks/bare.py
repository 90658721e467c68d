"""Celery tasks with the hops of a gated cycle (turn, tool, turn) and no work. They use Assent's Celery app, workers and queues.

Imported by the workers of a benchmark; `benchmarks.floors` sends the first turn and the tool.
"""

import time

from benchmarks.marks import say

from workers.celery import app


@app.task(name="turn.bare")
def turn(cycle_id: str, last: bool) -> None:
    """Stand for a turn: mark the cycle as parked, or as done."""
    say("D" if last else "P", cycle_id)


@app.task(name="tool.bare")
def tool(cycle_id: str) -> None:
    """Stand for a tool call: mark it, and send the last turn."""
    say("T", cycle_id)
    app.send_task("turn.bare", (cycle_id, True), ignore_result=True, retry=False)


@app.task(name="tool.nap")
def nap(cycle_id: str, seconds: float) -> None:
    """Sleep, and mark the end."""
    time.sleep(seconds)
    say("N", cycle_id)
