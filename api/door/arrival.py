"""Deletes a stored answer once the answer has reached its client. After that, a later equal request is a new one, not a retry.

An answer counts as delivered when all of it was sent to a client that had not hung up. After a crash of this process, or behind a
proxy, which counts as the client, the delivery is uncertain. A client that needs certainty sends an `Idempotency-Key`.
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

_BATCH_SECONDS = 0.05
"""Answers that are delivered within this time are deleted in one transaction."""
_RETRY_SECONDS = 1
"""Pause before a failed deletion is retried."""
_GONE = select.POLLHUP | select.POLLERR
_NO_LONGER_WRITES = getattr(select, "POLLRDHUP", 0)
"""The client has closed its sending side. Before the answer this counts as giving up. After the answer it is normal."""


def hung_up() -> bool:
    """True if the request's client has hung up. False if the server does not expose the connection."""
    client = connection()
    return client is not None and has_closed(client)


def has_closed(client: socket.socket) -> bool:
    """True if the client has closed its end of the connection."""
    return _has_state(client, _GONE | _NO_LONGER_WRITES)


def watch(response: Response, answer_id: str) -> None:
    """Delete the stored answer once the response has reached its client. For requests whose repetition may be a new request."""
    client = connection()
    if client is not None and not hung_up():
        response.call_on_close(partial(_sent, client, answer_id))


def delivered(client: socket.socket | None, answer_id: str) -> None:
    """Delete the stored answer, all of which was sent to the client as a stream."""
    if client is not None:
        _sent(client, answer_id)


def connection() -> socket.socket | None:
    """Return the connection to the request's client. None if the server does not expose it."""
    client: socket.socket | None = request.environ.get("gunicorn.socket")
    return client


def _has_state(client: socket.socket, state: int) -> bool:
    poll = monkey.get_original("select", "poll")()  # gevent's poll supports neither POLLHUP nor POLLRDHUP
    poll.register(client, state)
    return bool(poll.poll(0))


def _sent(client: socket.socket, answer_id: str) -> None:
    if not _has_state(client, _GONE):
        _delivered().put(answer_id)


@cache
def _delivered() -> "queue.SimpleQueue[str]":
    """Return the queue of delivered answers. Starts the thread that deletes them."""
    delivered: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_delete_delivered, args=(delivered,), name="arrivals", daemon=True).start()
    return delivered


def _delete_delivered(delivered: "queue.SimpleQueue[str]") -> None:
    while True:
        answer_ids = [delivered.get()]
        time.sleep(_BATCH_SECONDS)
        answer_ids += [delivered.get() for _ in range(delivered.qsize())]
        while not _deleted(answer_ids):
            time.sleep(_RETRY_SECONDS)


def _deleted(answer_ids: list[str]) -> bool:
    """Delete the answers. Returns False after an error."""
    try:
        idempotency.came_through(answer_ids)
    except Exception as error:  # noqa: BLE001 - after any error the answers stay until the retry, or until they expire
        log.warning("%s delivered answers are not deleted yet (%s)", len(answer_ids), type(error).__name__)
        return False
    return True
