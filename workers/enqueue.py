"""The only door into the queues: by task name, after commit.

Everything here is a hint. With Redis dead, half-open or full, a publish fails within `publish_seconds`, none is tried for
`publish_pause_seconds`, and the dispatch sweep and the streams' own look at the database find what was not said.
"""

import json
import logging
import os
import threading
import time
from collections import deque
from functools import cache
from typing import Any

import redis
from kombu import pools
from kombu.connection import Connection
from kombu.exceptions import KombuError, LimitExceeded

from models import db
from models.db import Hint, Outbox
from models.settings import settings
from workers.celery import app

log = logging.getLogger(__name__)

_FAILURES = (KombuError, redis.RedisError, OSError)
_paused_until = 0.0


def send(box: Outbox) -> None:
    """Publish what a transaction wants said: task hints, and to each session's readers that there is something new."""
    publish(box.hints, {session_id: {"seq": seq} for session_id, seq in box.sessions.items()})


def publish(hints: list[Hint], news: dict[str, dict[str, Any]]) -> bool:
    """Send task hints, and a small JSON note per session to `assent:session:{id}`. False if Redis did not take them in time."""
    global _paused_until  # noqa: PLW0603 - the breaker of this process
    if not hints and not news:
        return True
    if time.monotonic() < _paused_until:
        return False
    try:
        _send_hints(hints)
        for session_id, note in news.items():
            _news().say(channel(session_id), json.dumps(note))
    except LimitExceeded:
        log.warning("all connections to the queue are busy: the sweeps take over")
        return False
    except _FAILURES as error:
        _paused_until = time.monotonic() + settings().publish_pause_seconds
        pools.reset()  # type: ignore[no-untyped-call]  # the next connection declares its queues anew: an emptied Redis has forgotten them
        log.warning("Redis takes no hints (%s): the sweeps take over", type(error).__name__)
        return False
    return True


def backlog(queue: str) -> int | None:
    """Messages in a queue; None if Redis does not say in time."""
    try:
        return int(_redis().llen(queue))
    except _FAILURES:
        return None


def channel(session_id: str) -> str:
    """The pub/sub channel of a session's readers."""
    return f"assent:session:{session_id}"


def _send_hints(hints: list[Hint]) -> None:
    if not hints:
        return
    with pools.producers[_connection()].acquire(block=True, timeout=settings().publish_seconds) as producer:
        for hint in hints:
            where = {"queue": hint.queue} if hint.queue else {}
            shown = {"argsrepr": str(hint.args), "kwargsrepr": "{}"}  # ids: what Celery would take care to shorten for Flower
            app.send_task(hint.task, hint.args, producer=producer, ignore_result=True, retry=False, **where, **shown)


@cache
def _connection() -> Connection:
    limit = settings().publish_seconds
    options = {"socket_timeout": limit, "socket_connect_timeout": limit, "max_retries": 0, "retry_on_timeout": False}
    return Connection(settings().redis_url, transport_options=options)  # type: ignore[no-untyped-call]  # kombu


class _News:
    """A connection for what is said to readers. Nobody waits for its answers: they are read before the next is said, and must have
    come within `publish_seconds`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Any = _redis().connection_pool.make_connection()
        self._unanswered: deque[float] = deque()
        """When each was said."""

    def say(self, where: str, what: str) -> None:
        """Publish it. Errors: redis's."""
        if not self._lock.acquire(timeout=settings().publish_seconds):
            raise redis.TimeoutError("others wait for Redis")
        try:
            if time.monotonic() < _paused_until:
                raise redis.TimeoutError("Redis did not answer the one before")
            self._connect()
            self._connection.send_command("PUBLISH", where, what)
            self._unanswered.append(time.monotonic())
        except BaseException:
            self._connection.disconnect()  # who knows how much of it was sent
            raise
        finally:
            self._lock.release()

    def _connect(self) -> None:
        try:
            while self._connection.is_connected and self._connection.can_read():
                self._connection.read_response()
                self._unanswered.popleft()
        except redis.ConnectionError:
            self._connection.disconnect()
        if not self._connection.is_connected:
            self._unanswered.clear()
            self._connection.connect()
        if self._unanswered and time.monotonic() > self._unanswered[0] + settings().publish_seconds:
            raise redis.TimeoutError("Redis does not answer")


@cache
def _news() -> _News:
    return _News()


os.register_at_fork(after_in_child=_news.cache_clear)  # a connection is one process's


@cache
def _redis() -> "redis.Redis":
    limit = settings().publish_seconds
    return redis.Redis.from_url(settings().redis_url, socket_timeout=limit, socket_connect_timeout=limit)


db.on_commit(send)
