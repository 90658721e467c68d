"""The sweep that sends hints of queued rows again."""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from models.database.transactions import Hint
from models.notices.notification import Notification
from models.operate import due, queued
from models.outbox.delivery import Delivery
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.settings import settings
from workers import enqueue
from workers.celery import app
from workers.outcome import Sweep, did

LONG_QUEUE = 1000
"""A queue with so many messages gets no hints from the dispatch sweep."""
_PAUSE_SECONDS = 0.1
"""Between two looks of one dispatch sweep at queues that were full."""


@app.task(name="sweep.dispatch", base=Sweep)
def dispatch() -> str:
    """Send hints for queued rows that are due and have had no hint recently. This makes up for every lost message.

    While more rows wait than a queue takes, the sweep goes on as soon as workers have taken hints, until the next sweep is due.
    """
    until = time.monotonic() + settings().sweep_seconds
    first = _send_hints()
    once = [
        _fill("deliver", queued.change_hints),
        _fill("deliver", partial(queued.hints, Notification)),
    ]  # their workers go on alone
    hints, more = sum(batch.hints for batch in (*first, *once)), any(batch.more for batch in first)
    while more and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
        batches = _send_hints()
        hints, more = hints + sum(batch.hints for batch in batches), any(batch.more for batch in batches)
    return did("sent hints again:", hints)


class _Batch(NamedTuple):
    """The hints that a queue got."""

    hints: int
    more: bool
    """True if more may wait."""


def _send_hints() -> list[_Batch]:
    """Send a batch of hints of turns, calls and deliveries to each queue."""
    batches = [_fill("turns", partial(queued.hints, Turn)), _fill("deliver", partial(queued.hints, Delivery))]
    return batches + [_fill(queue or "tools", partial(queued.hints, ToolCall, queue=queue)) for queue in queued.queues()]


def _fill(queue: str, hints: Callable[..., list[Hint]]) -> _Batch:
    """Send a batch of hints to a queue that is not long."""
    waiting = enqueue.backlog(queue)
    if waiting is None or waiting >= LONG_QUEUE:
        return _Batch(0, waiting is not None)
    limit = min(due.BATCH, LONG_QUEUE - waiting)
    batch = hints(limit, is_empty=waiting == 0)
    if not enqueue.publish(batch, {}):
        return _Batch(0, False)
    return _Batch(len(batch), len(batch) >= limit)
