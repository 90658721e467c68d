"""How gunicorn serves: `gunicorn "api:create_app()" --config python:api.serving`.

Its limits come from our settings, and what it refuses by itself, before any route sees it, is answered in the wire's shape.
"""

import json
import socket
from typing import Any

from gunicorn import util
from gunicorn.http import errors
from gunicorn.workers.ggevent import GeventWorker

from models import garbage_collection
from models.database import ids
from models.people import issuer
from models.settings import settings
from models.variables import refuse_needless

_STATUS: dict[type[Exception], tuple[int, str]] = {
    errors.LimitRequestLine: (414, "URI Too Long"),
    errors.LimitRequestHeaders: (431, "Request Header Fields Too Large"),
    errors.ExpectationFailed: (417, "Expectation Failed"),
    errors.UnsupportedTransferCoding: (501, "Not Implemented"),
}


class Worker(GeventWorker):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's gevent worker, with errors that clients can read."""

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer a request that is no HTTP, or more of it than is taken; say nothing of one that failed in mid-answer."""
        ours = (errors.InvalidResponseHeader, errors.InvalidResponseHeaderName)
        if not isinstance(exc, errors.ParseException) or isinstance(exc, ours):
            super().handle_error(req, client, addr, exc)
            return
        self.log.warning("Not a request that is taken, from %s: %s", addr and addr[0], exc)
        try:
            client.sendall(refusal(exc))
            util.close_graceful(client)  # an answer to what was not read to its end would be lost by a plain close
        except OSError as error:
            self.log.debug("The refusal was not sent: %s", error)


def refusal(exc: Exception) -> bytes:
    """The response to a request that could not be read: what is wrong, in the wire's shape, and the connection's end."""
    status, reason = _STATUS.get(type(exc), (400, "Bad Request"))
    request_id = ids.new("req")
    error = {"type": "invalid_request_error", "message": _words(status, exc)}
    body = json.dumps({"type": "error", "error": error, "request_id": request_id}).encode()
    lines = [
        f"HTTP/1.1 {status} {reason}",
        "connection: close",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"request-id: {request_id}",
        "x-should-retry: false",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _words(status: int, exc: Exception) -> str:
    said = settings()
    if status == 414:
        return f"The request line (method, path and query) is longer than {said.max_request_line_bytes} bytes, the most taken."
    if status == 431:
        return f"At most {said.max_headers} headers are taken, each of at most {said.max_header_bytes} bytes."
    return f"This is no HTTP request that this server takes: {str(exc)[:200]}."


def on_starting(_arbiter: Any) -> None:
    """gunicorn's hook, before any process is forked: one that may not start would be forked again and again."""
    refuse_needless("web")
    try:
        issuer.check()
    except issuer.Misconfigured as error:
        raise SystemExit(f"assent: {error}") from None


def post_worker_init(_worker: Any) -> None:
    """gunicorn's hook: a process has loaded the application."""
    garbage_collection.freeze()


worker_class = Worker
# Who is a proxy, `api.client` decides by ASSENT_TRUSTED_PROXIES. gunicorn's own rule would believe any process of this machine.
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
limit_request_line = settings().max_request_line_bytes
limit_request_fields = settings().max_headers
limit_request_field_size = settings().max_header_bytes
