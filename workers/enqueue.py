"""The only door into the queues: by task name, after commit.

Everything here is a hint. With Redis dead, half-open or full, a publish fails within `publish_seconds` or is lost, and the next
one notices. None is tried for `publish_pause_seconds` then, and the dispatch sweep and the streams' own look at the database find
what was not said.
"""

import base64
import logging
import os
import threading
import time
from collections import deque
from functools import cache
from typing import Any
from uuid import uuid4

import redis

from models import db
from models.db import Hint, Outbox
from models.json_codec import encode
from models.settings import settings
from workers.celery import app

log = logging.getLogger(__name__)

_FAILURES = (redis.RedisError, OSError)
_paused_until = 0.0
_LOOK_SECONDS = 0.02
"""What Redis refuses, and that it has hung up, is noticed so much later."""


def send(box: Outbox) -> None:
    """Publish what a transaction wants said: task hints, and to each session's readers that there is something new."""
    publish(box.hints, {session_id: {"seq": seq} for session_id, seq in box.sessions.items()})


def publish(hints: list[Hint], news: dict[str, dict[str, Any]]) -> bool:
    """Send task hints, and a small JSON note per session to `assent:session:{id}`. False if Redis takes none now; True does not say
    that it took these."""
    global _paused_until  # noqa: PLW0603 - the breaker of this process
    if not hints and not news:
        return True
    if time.monotonic() < _paused_until:
        return False
    said = [("LPUSH", _queue(hint), _message(hint)) for hint in hints]
    said += [("PUBLISH", channel(session_id), encode(note)) for session_id, note in news.items()]
    try:
        _publisher().say(said)
    except _FAILURES as error:
        _paused_until = time.monotonic() + settings().publish_pause_seconds
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


def _queue(hint: Hint) -> str:
    return hint.queue or _queue_of(hint.task)


@cache
def _queue_of(task: str) -> str:
    name: str = app.amqp.router.route({}, task)["queue"].name
    return name


def _message(hint: Hint) -> str:
    """What Celery's `send_task` would push; its way there costs as much as all else that a request does."""
    task_id = str(uuid4())
    # Ids only: what Celery would take care to shorten for Flower.
    shown = {"argsrepr": str(hint.args), "kwargsrepr": "{}"}
    headers, properties, body, _ = app.amqp.as_task_v2(task_id, hint.task, hint.args, ignore_result=True, **shown)
    properties |= {
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": _queue(hint)},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": task_id,
    }
    message = {
        "body": base64.b64encode(encode(body).encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers,
        "properties": properties,
    }
    return encode(message)


class _Publisher:
    """A connection on which nobody waits for answers: they are read before more is said, at most every `_LOOK_SECONDS`, and must
    have come within `publish_seconds`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Any = _redis().connection_pool.make_connection()
        self._unanswered: deque[float] = deque()
        """When each command was said."""
        self._looked = 0.0

    def say(self, commands: list[tuple[str, str, str]]) -> None:
        """Send these, all at once. Errors: redis's, also of what was said before."""
        if not self._lock.acquire(timeout=settings().publish_seconds):
            raise redis.TimeoutError("others wait for Redis")
        try:
            if time.monotonic() < _paused_until:
                raise redis.TimeoutError("Redis did not answer the one before")
            if time.monotonic() > self._looked + _LOOK_SECONDS:
                self._look()
            self._connection.send_packed_command(self._connection.pack_commands(commands))
            self._unanswered.extend([time.monotonic()] * len(commands))
        except BaseException:
            self._end()  # who knows how much of it was sent
            raise
        finally:
            self._lock.release()

    def _look(self) -> None:
        """Read what was answered, and see whether Redis has hung up or says nothing. Errors: redis's, also those it answered."""
        self._looked = time.monotonic()
        try:
            while self._connection.is_connected and self._connection.can_read():
                self._connection.read_response()
                if not self._unanswered:
                    raise redis.InvalidResponse("Redis answers what was not asked")
                self._unanswered.popleft()
        except redis.ConnectionError as error:
            if type(error) is not redis.ConnectionError:  # one of its kinds is an answer: it loads, it wants a password
                raise
            self._end()
            return
        if self._unanswered and time.monotonic() > self._unanswered[0] + settings().publish_seconds:
            raise redis.TimeoutError("Redis does not answer")

    def _end(self) -> None:
        self._connection.disconnect()
        self._unanswered.clear()


@cache
def _publisher() -> _Publisher:
    return _Publisher()


os.register_at_fork(after_in_child=_publisher.cache_clear)  # a connection is one process's


@cache
def _redis() -> "redis.Redis":
    limit = settings().publish_seconds
    return redis.Redis.from_url(settings().redis_url, socket_timeout=limit, socket_connect_timeout=limit)


db.on_commit(send)
