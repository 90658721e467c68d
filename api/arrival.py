"""Whether an answer has come through to its client: then no later retry can be meant by it.

An answer has come through when all of it was sent to a client that had not hung up before. What a dying process sent nobody knows,
nor what became of it behind a proxy, which is the client then; who must be sure sends an `Idempotency-Key`.
"""

import logging
import queue
import select
import socket
import threading
import time
from functools import cache, partial

from flask import Response, request
from gevent import monkey

from models.workspace import idempotency

log = logging.getLogger(__name__)

TOGETHER_SECONDS = 0.05
"""Answers that come through within this are forgotten in one transaction."""
AGAIN_SECONDS = 1
"""Between two tries, while that cannot be done."""
_GONE = select.POLLHUP | select.POLLERR
_NO_LONGER_WRITES = getattr(select, "POLLRDHUP", 0)
"""Before its answer: it has given up (or is an odd client, whose answer is kept). Behind it: it has got what it wanted."""


def hung_up() -> bool:
    """Whether the request's client has given up. False where the server does not say."""
    client = _client()
    return client is not None and has_closed(client)


def has_closed(client: socket.socket) -> bool:
    """True if the client has closed its end of the connection."""
    return _is(client, _GONE | _NO_LONGER_WRITES)


def watch(response: Response, answer_id: str) -> None:
    """Have the answer to a request that may be meant anew forgotten once it has come through."""
    client = _client()
    if client is not None and not hung_up():
        response.call_on_close(partial(_sent, client, answer_id))


def _client() -> socket.socket | None:
    found: socket.socket | None = request.environ.get("gunicorn.socket")
    return found


def _is(client: socket.socket, state: int) -> bool:
    look = monkey.get_original("select", "poll")()  # gevent's knows neither POLLHUP nor POLLRDHUP
    look.register(client, state)
    return bool(look.poll(0))


def _sent(client: socket.socket, answer_id: str) -> None:
    if not _is(client, _GONE):
        _through().put(answer_id)


@cache
def _through() -> "queue.SimpleQueue[str]":
    """Answers that have come through, and a thread that has them forgotten."""
    through: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_forget, args=(through,), name="arrivals", daemon=True).start()
    return through


def _forget(through: "queue.SimpleQueue[str]") -> None:
    while True:
        together = [through.get()]
        time.sleep(TOGETHER_SECONDS)
        together += [through.get() for _ in range(through.qsize())]
        while not _forgotten(together):
            time.sleep(AGAIN_SECONDS)


def _forgotten(answer_ids: list[str]) -> bool:
    try:
        idempotency.came_through(answer_ids)
    except Exception as error:  # noqa: BLE001 - whatever it is, they are kept until it is over, or for their ten minutes
        log.warning("%s answers that came through are not forgotten yet (%s)", len(answer_ids), type(error).__name__)
        return False
    return True
