"""The only way into the queues: task hints, and notes to the readers of a session's stream.

A thread of this process sends them, so that no request and no task waits for Redis. After a failure the thread sends nothing for
`publish_pause_seconds`. A lost message does no harm: the dispatch sweep sends hints again, and streams read the database.
"""

import contextlib
import logging
import os
import queue
import threading
import time
from functools import cache
from typing import Any

import redis
from kombu.exceptions import OperationalError

from models.database import transactions
from models.database.transactions import Hint, Outbox
from models.operate.metrics import spans
from models.pure.json.codec import encode
from models.settings import broker, settings
from workers.celery import app

log = logging.getLogger(__name__)

_FAILURES = (redis.RedisError, OperationalError, OSError)
_MOST_WAITING = 10_000
"""Most publications of each lane that wait for the thread. Further ones are dropped."""

_publishing = threading.Lock()
"""Held during a publication, at most for the time limits of Redis."""

_GO_FIRST = {"turn.run", "tool.run"}
"""The tasks whose hints go before all others."""

Notes = dict[str, dict[str, Any]]
"""A small JSON note by the id of a session, for the readers of its events, or of a workspace, for its open pages."""


def send(box: Outbox) -> None:
    """Publish a transaction's hints and spans, the last seq for each session's readers, a note for each workspace's open pages."""
    notes: Notes = {session_id: {"seq": seq} for session_id, seq in box.sessions.items()}
    publish(box.hints, notes | {workspace_id: {} for workspace_id in box.workspaces})
    spans.export(box.spans)


def publish(hints: list[Hint], notes: Notes) -> bool:
    """Hand hints and notes to the publisher's thread. Returns False while publishing is paused, or if the queue is full."""
    return publisher().take(hints, notes) if hints or notes else True


def backlog(name: str) -> int | None:
    """Return the number of messages in a queue; None if Redis does not respond in time."""
    try:
        return int(publisher().redis.llen(name))
    except _FAILURES:
        return None


def channel(session_id: str) -> str:
    """Return the pub/sub channel of a session's readers."""
    return f"assent:session:{session_id}"


_Publication = tuple[list[Hint], Notes]


class Publisher:
    """Sends to Redis in a thread of its own, in two lanes, each in order.

    Hints of turns and calls, and all notes, go first. Another hint is sent when none of them waits: of a webhook, a message to a
    person, or a sweep, of which thousands may be due at once.
    """

    def __init__(self) -> None:
        limit = settings().publish_seconds
        self.redis = broker.client(limit)
        self.paused_until = 0.0
        self._first: queue.Queue[_Publication] = queue.Queue(_MOST_WAITING)
        self._later: queue.Queue[_Publication] = queue.Queue(_MOST_WAITING)
        self._count = threading.Semaphore(0)
        """Counts what waits in both lanes."""
        self._connect()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._thread.start()

    def take(self, hints: list[Hint], notes: Notes) -> bool:
        """Queue hints and notes for the thread. Returns False while publishing is paused, or if a lane is full."""
        if time.monotonic() < self.paused_until:
            return False
        first = [hint for hint in hints if hint.task in _GO_FIRST]
        try:
            if first or notes:
                self._put(self._first, (first, notes))
            for hint in hints:
                if hint.task not in _GO_FIRST:
                    self._put(self._later, ([hint], {}))  # one by one, so that the first lane waits for one at most
        except queue.Full:
            return False
        return True

    def _put(self, lane: "queue.Queue[_Publication]", publication: _Publication) -> None:
        lane.put_nowait(publication)
        self._count.release()

    def _next(self) -> _Publication:
        """Wait for the next publication."""
        self._count.acquire()
        with contextlib.suppress(queue.Empty):
            return self._first.get_nowait()
        return self._later.get_nowait()

    def _run(self) -> None:
        while True:
            publication = self._next()
            try:
                with _publishing:
                    self._publish(*publication)
            except Exception as error:  # noqa: BLE001 - without this thread, the process publishes nothing any more
                log.error("a message was not published (%s): the sweeps send hints later", type(error).__name__)

    def _publish(self, hints: list[Hint], notes: Notes) -> None:
        if time.monotonic() < self.paused_until:
            return
        try:
            self._send(hints, notes)
        except _FAILURES as error:
            self.paused_until = time.monotonic() + settings().publish_pause_seconds
            self._producer.connection.collect()
            self._connect()
            log.warning("Redis is not reachable (%s): the sweeps send the hints later", type(error).__name__)

    def _connect(self) -> None:
        """Prepare a connection for Celery's messages. kombu opens the connection for the first message."""
        limit = settings().publish_seconds
        options = broker.options(socket_timeout=limit, socket_connect_timeout=limit)
        self._producer = app.amqp.Producer(
            app.connection_for_write(settings().redis_url, transport_options=options), auto_declare=False
        )

    def _send(self, hints: list[Hint], notes: Notes) -> None:
        for hint in hints:
            # For Flower. The arguments are ids, so nothing needs to be shortened.
            texts = {"argsrepr": str(hint.args), "kwargsrepr": hint.about or "{}"}
            app.send_task(hint.task, hint.args, queue=hint.queue, producer=self._producer, ignore_result=True, retry=False, **texts)
        for session_id, note in notes.items():
            self.redis.publish(channel(session_id), encode(note))


@cache
def publisher() -> Publisher:
    """Return this process's publisher."""
    return Publisher()


def _after_fork() -> None:
    _publishing.release()
    publisher.cache_clear()  # neither threads nor connections survive a fork


# A fork in the middle of a publication would leave the child with modules that are half imported.
os.register_at_fork(before=_publishing.acquire, after_in_parent=_publishing.release, after_in_child=_after_fork)

transactions.on_commit(send)
