"""gunicorn's configuration: `gunicorn "api:create_app()" --config python:api.serving`.

Its limits come from the settings. A request that gunicorn itself refuses, before any route, gets an error in the API's format.
"""

import errno
import json
import logging
import logging.config
import re
import socket
from contextlib import suppress
from typing import Any

import gevent
from flask import g, has_request_context
from gunicorn import util
from gunicorn.http import errors
from gunicorn.workers.ggevent import GeventWorker

from models.database import ids
from models.errors import Refusal
from models.operate import garbage_collection, log_lines
from models.operate.metrics import durations, spans
from models.people import issuer
from models.settings import settings
from models.settings.variables import refuse_needless

HEADER_SECONDS = 2
"""Time in which the headers of a connection's first request must arrive."""

_STATUS: dict[type[Exception], tuple[int, str]] = {
    errors.LimitRequestLine: (414, "URI Too Long"),
    errors.LimitRequestHeaders: (431, "Request Header Fields Too Large"),
    errors.ExpectationFailed: (417, "Expectation Failed"),
    errors.UnsupportedTransferCoding: (501, "Not Implemented"),
}


class Worker(GeventWorker):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's gevent worker, with errors that clients can read, limits of connections, and a limit of a request's CPU time."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._open_connections: set[socket.socket] = set()
        """Connections that had a response and wait for their next request."""

    def timeout_ctx(self) -> gevent.Timeout:
        """Limit the wait for the next request's headers. A connection without a response so far has less time."""
        from api.door import limits

        return gevent.Timeout(settings().keepalive_seconds if limits.had_a_request() else HEADER_SECONDS, False)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop. Ends the connections that wait for a next request, so that none of them delays the end."""
        super().handle_exit(sig, frame)
        gevent.spawn(self._end_kept)

    def _end_kept(self) -> None:
        for client in list(self._open_connections):
            # A duplicate's: gevent's shutdown of the socket itself would wake its reader with an error, which gunicorn logs.
            with suppress(OSError), socket.fromfd(client.fileno(), client.family, client.type) as duplicate:
                duplicate.shutdown(socket.SHUT_RD)

    def load_wsgi(self) -> None:
        """Load the application."""
        from api.serving import watchdog

        super().load_wsgi()
        self.wsgi: watchdog.App = watchdog.watched(self.wsgi)
        watchdog.start()

    def handle(self, listener: Any, client: socket.socket, addr: Any) -> None:
        """Serve a connection. Refuses it if its client's address has too many without a valid credential."""
        from api.door import limits

        if isinstance(addr, tuple):
            _end_unread(client)
        try:
            with limits.connected(addr[0] if isinstance(addr, tuple) else None):
                super().handle(listener, client, addr)
        except Refusal as refused:
            request_id = ids.new("req")
            limits.log_refusal(request_id, "429 rate_limit_error, a connection", address=addr[0])
            response = _response(request_id, 429, "Too Many Requests", "rate_limit_error", str(refused), "retry-after: 1")
            self._send(client, response, 0.1)
        finally:
            self._open_connections.discard(client)

    def handle_request(self, listener: Any, req: Any, client: socket.socket, addr: Any) -> Any:
        """Serve a request of a connection."""
        from api.door import limits

        self._open_connections.discard(client)
        try:
            return super().handle_request(listener, req, client, addr)
        except OSError as error:
            if error.errno == errno.ETIMEDOUT:  # by `_end_unread`; gunicorn would log a traceback
                raise ConnectionResetError(errno.ECONNRESET, "The client read nothing of its response") from error
            raise
        finally:
            limits.request_ended()
            self._open_connections.add(client)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Respond to a request that is malformed or beyond the limits. gunicorn handles all other errors."""
        from api.door import limits

        ours = (errors.InvalidResponseHeader, errors.InvalidResponseHeaderName)
        if not isinstance(exc, errors.ParseException) or isinstance(exc, ours):
            super().handle_error(req, client, addr, exc)
            return
        status, reason = _STATUS.get(type(exc), (400, "Bad Request"))
        request_id = ids.new("req")
        limits.log_refusal(request_id, f"{status} {type(exc).__name__}", address=addr[0] if isinstance(addr, tuple) else None)
        self._send(client, _response(request_id, status, reason, "invalid_request_error", _message(status, exc)), 2)

    def _send(self, client: socket.socket, response: bytes, seconds: float) -> None:
        """Send a response and close the connection, once the client has done so or after these seconds."""
        try:
            client.sendall(response)
            util.close_graceful(client, seconds)  # a plain close would lose the response, since the request was not read to its end
        except OSError as error:
            self.log.debug("The refusal was not sent: %s", error)


def _end_unread(client: socket.socket) -> None:
    """Have the kernel end the connection once its client has read nothing of a response for `stream_write_seconds`."""
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:  # macOS has none: there, such a connection stays open
        client.setsockopt(socket.IPPROTO_TCP, option, int(1000 * settings().stream_write_seconds))


def _response(request_id: str, status: int, reason: str, kind: str, message: str, *headers: str) -> bytes:
    """Return the response to a request that no route gets: an error in the API's format, which closes the connection."""
    error = {"type": kind, "message": message}
    body = json.dumps({"type": "error", "error": error, "request_id": request_id}).encode()
    lines = [
        f"HTTP/1.1 {status} {reason}",
        "connection: close",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"request-id: {request_id}",
        *(headers or ("x-should-retry: false",)),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _message(status: int, exc: Exception) -> str:
    s = settings()
    if status == 414:
        return f"The request line (method, path and query) is longer than the limit of {s.max_request_line_bytes} bytes."
    if status == 431:
        return f"The limit is {s.max_headers} headers, each of at most {s.max_header_bytes} bytes."
    return f"This server cannot read this HTTP request: {str(exc)[:200]}."


def on_starting(arbiter: Any) -> None:
    """gunicorn's hook before the first fork. A check in the workers would make gunicorn restart them for ever."""
    use_log_lines(arbiter.log)
    refuse_needless("web")
    try:
        issuer.check()
    except issuer.IssuersMisconfigured as error:
        raise SystemExit(f"assent: {error}") from None
    durations.begin()
    spans.check()


def use_log_lines(log: Any) -> None:
    """Have gunicorn's logger and all others write lines of one form, to the same place."""
    if log_lines.is_json():
        handlers = log.error_log.handlers
        log_lines.use(handlers, _ids)
        logging.basicConfig(handlers=handlers, level=log.error_log.level)


def _ids() -> dict[str, str]:
    """Return the id of the request whose response is made here. Nothing of its path: a path may hold a secret."""
    request_id = g.get("request_id") if has_request_context() else None
    return {"request_id": request_id} if request_id else {}


def post_fork(_arbiter: Any, _worker: Any) -> None:
    """gunicorn's hook in a new process, before it loads the application."""
    garbage_collection.pause()


class HideSecrets(logging.Filter):
    """Keeps the secrets in links out of gunicorn's logs: gunicorn logs each path at the level `debug`, and in an access log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Cut the secret off each path."""
        record.msg, record.args = _SECRET_PATH.sub(r"\1...", record.getMessage()), ()
        return True


_SECRET_PATH = re.compile(r"(/link/|/unsubscribe/)[^\s\"']+")


def post_worker_init(_worker: Any) -> None:
    """gunicorn's hook after a process has loaded the application."""
    for name in ("gunicorn.error", "gunicorn.access"):
        logging.getLogger(name).addFilter(HideSecrets())
    garbage_collection.freeze()


def worker_exit(_arbiter: Any, _worker: Any) -> None:
    """gunicorn's hook at the end of a process, behind its last line. Stops the watchdog, and has `logging` forget its handlers.

    Else the end of a handler that a module keeps, as Flask's does, would take a lock of gevent, whose modules Python has emptied by
    then: the log would end with a TypeError. Handlers still write.
    """
    from api.serving import watchdog

    watchdog.stop()
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})


worker_class = Worker
keepalive = settings().keepalive_seconds
# `api.door.client` reads the proxies' headers, by ASSENT_TRUSTED_PROXIES. gunicorn would trust any process on this machine.
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
limit_request_line = settings().max_request_line_bytes
limit_request_fields = settings().max_headers
limit_request_field_size = settings().max_header_bytes
