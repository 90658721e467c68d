"""The stand-in model over HTTP: routes, refusals, scripted faults, a log of requests. Manual: `deploy.standin`."""

import errno
import json
import secrets
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs

from deploy.standin import chat, chat_writing, compaction, replying, window, writing
from deploy.standin.pairing import check_pairs
from deploy.standin.rules import RefusedError, check
from deploy.standin.script import Fault, ScriptedReply, UnreadableError
from deploy.standin.usage import PrefixMemory
from deploy.standin.writing import WholeReply

MAX_BODY_BYTES = 32_000_000
LOG_BYTES = 32_000_000
MAX_COUNTS = 10_000
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
MODEL = {
    "type": "model",
    "id": "stand-in",
    "display_name": "The stand-in model",
    "created_at": "2026-01-01T00:00:00Z",
    "lifecycle": "active",
    "object": "model",
    "created": 1_767_225_600,
    "owned_by": "assent",
}
"""A model as both wires list it."""
CHAT = "/v1/chat/completions"

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class StandIn:
    """A WSGI application. Pauses use `sleep`: gevent's under `serve`, else the thread's."""

    def __init__(self, sleep: Callable[[float], object]) -> None:
        self._sleep = sleep
        self._prefixes = PrefixMemory()
        self._tries: OrderedDict[bytes, int] = OrderedDict()
        self._log: deque[bytes] = deque()
        self._log_bytes = 0

    def __call__(self, environ: Environ, start: StartResponse) -> Iterable[bytes]:
        request_id = f"req_{secrets.token_hex(12)}"
        try:
            route = ROUTES.get((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
            if route is None:
                raise RefusedError(f"Not found: {environ['PATH_INFO']}", 404)
            return route(self, environ, start, request_id)
        except RefusedError as refusal:
            error = {"type": _error_type(refusal.status), "message": str(refusal)}
            payload: dict[str, Any] = {"type": "error", "error": error, "request_id": request_id}
            if environ["PATH_INFO"] == CHAT:
                payload = {"error": error | {"param": None, "code": refusal.code}}
            return _json(start, payload, request_id, refusal.status, refusal.retry_after)

    def health(self, _: Environ, start: StartResponse, request_id: str) -> Iterable[bytes]:
        return _json(start, {"status": "ok"}, request_id)

    def models(self, environ: Environ, start: StartResponse, request_id: str) -> Iterable[bytes]:
        _need_key(environ)
        page = {"object": "list", "data": [MODEL], "has_more": False, "first_id": MODEL["id"], "last_id": MODEL["id"]}
        return _json(start, page, request_id)

    def requests(self, environ: Environ, start: StartResponse, request_id: str) -> Iterable[bytes]:
        last = parse_qs(environ.get("QUERY_STRING", "")).get("last", ["100"])[0]
        if not last.isdecimal() or int(last) < 1:
            raise RefusedError("last: Input should be an integer greater than 0")
        return _json(start, {"data": [json.loads(body) for body in list(self._log)[-int(last) :]]}, request_id)

    def forget_requests(self, _: Environ, start: StartResponse, request_id: str) -> Iterable[bytes]:
        self._log.clear()
        self._log_bytes = 0
        return _json(start, {"data": []}, request_id)

    def messages(self, environ: Environ, start: StartResponse, request_id: str) -> Iterable[bytes]:
        body = self._read(environ)
        if not environ.get("HTTP_ANTHROPIC_VERSION"):
            raise RefusedError("anthropic-version: header is required")
        check(body)
        compaction.check(body, environ.get("HTTP_ANTHROPIC_BETA", ""))
        check_pairs(body["messages"])
        window.check(body, is_chat=False)
        return self._respond(writing, body, body, start, request_id)

    def chat(self, environ: Environ, start: StartResponse, request_id: str) -> Iterable[bytes]:
        body = self._read(environ)
        request = chat.translated(body)
        window.check(request, is_chat=True)
        return self._respond(chat_writing, request | {"cache_control": {"type": "ephemeral"}}, body, start, request_id)

    def _respond(
        self, wire: ModuleType, request: dict[str, Any], body: dict[str, Any], start: StartResponse, request_id: str
    ) -> Iterable[bytes]:
        """Return the response of a wire. `request` has the form of the Messages API; `body` is the client's."""
        page, fault = self._page(request, body)
        usage = self._prefixes.usage(request)
        if body.get("stream"):
            _start_stream(start, request_id)
            counts = usage if wire is writing or (body.get("stream_options") or {}).get("include_usage") else None
            end = wire.error_event(_error_type(fault.status), fault.status, _scripted(fault)) if fault and fault.status else b""
            return self._paced(wire.stream(page, body["model"], counts, fault), fault, end)
        self._sleep(writing.duration(page))
        return _json(start, wire.message(page, body["model"], usage), request_id)

    def _page(self, request: dict[str, Any], body: dict[str, Any]) -> tuple[WholeReply, Fault | None]:
        """Return the reply, and a fault in its middle, if the script has one. Raises RefusedError. Arguments as in `_respond`."""
        try:
            reply = compaction.reply_to(request) or replying.next_reply(request)
        except UnreadableError as error:
            raise RefusedError(str(error)) from None
        fault = self._fault_due(reply, request)
        if fault and not (fault.mid_stream and body.get("stream")):
            if fault.status is None:
                _drop()
            raise RefusedError(_scripted(fault), fault.status or 500, fault.retry_after)
        return writing.write(reply, request["max_tokens"], fault), fault

    def _read(self, environ: Environ) -> Any:
        _need_key(environ)
        if int(environ.get("CONTENT_LENGTH") or 0) > MAX_BODY_BYTES:
            raise RefusedError("Request exceeds the maximum size", 413)
        raw = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]) if environ.get("CONTENT_LENGTH") else -1)
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            raise RefusedError("The request body is not valid JSON") from None
        self._keep(raw)
        return body

    def _paced(self, items: Iterator[bytes | float], fault: Fault | None, end: bytes) -> Iterator[bytes]:
        """Yield each event at its time, then `end`. A late event does not delay the next one."""
        due, pending = time.monotonic(), b""
        for item in items:
            if isinstance(item, bytes):
                pending += item
            elif item:
                if pending:
                    yield pending
                    pending = b""
                due += item
                self._sleep(max(0.0, due - time.monotonic()))
        yield pending + end
        if fault and fault.status is None:
            _drop()

    def _fault_due(self, reply: ScriptedReply, body: dict[str, Any]) -> Fault | None:
        if not reply.faults:
            return None
        key = replying.fingerprint(body)
        tries = self._tries.pop(key, 0)
        fault = replying.fault_due(reply, tries)
        if fault:
            self._tries[key] = tries + 1
            while len(self._tries) > MAX_COUNTS:
                self._tries.popitem(last=False)
        return fault

    def _keep(self, raw: bytes) -> None:
        self._log.append(raw)
        self._log_bytes += len(raw)
        while self._log_bytes > LOG_BYTES and len(self._log) > 1:
            self._log_bytes -= len(self._log.popleft())


def create_app(sleep: Callable[[float], object] = time.sleep) -> StandIn:
    """Return the stand-in as a WSGI application, for any threaded or greenlet server."""
    return StandIn(sleep)


def serve(port: int) -> None:
    """Serve on 127.0.0.1 for ever, hundreds of streams at once. Prints a line when ready. Port 0 selects a free port."""
    import gevent
    from gevent.pywsgi import WSGIServer

    server = WSGIServer(("127.0.0.1", port), create_app(gevent.sleep), log=None, backlog=1024)
    server.start()
    # Sends each token at once instead of waiting for the next. Accepted sockets inherit the option.
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(f"stand-in model ready on http://127.0.0.1:{server.server_port}", flush=True)  # noqa: T201
    server.serve_forever()


def _drop() -> None:
    """End the connection without another byte. The server treats this error like a client that disconnects."""
    raise ConnectionResetError(errno.ECONNRESET, "the script drops the connection")


def _scripted(fault: Fault) -> str:
    return "Overloaded" if fault.status == 529 else f"The script asks for {fault.status or 'a dropped connection'}"


def _error_type(status: int) -> str:
    return ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")


def _start_stream(start: StartResponse, request_id: str) -> None:
    kind = "text/event-stream; charset=utf-8"
    start("200 OK", [("content-type", kind), ("request-id", request_id), ("cache-control", "no-cache")])


def _need_key(environ: Environ) -> None:
    if not environ.get("HTTP_X_API_KEY") and not environ.get("HTTP_AUTHORIZATION"):
        raise RefusedError("x-api-key header is required", 401)


def _json(start: StartResponse, data: Any, request_id: str, status: int = 200, retry_after: int | None = None) -> list[bytes]:
    body = json.dumps(data).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("request-id", request_id)]
    if retry_after is not None:
        headers.append(("retry-after", str(retry_after)))
    start(f"{status} {'OK' if status == 200 else 'Error'}", headers)
    return [body]


Route = Callable[[StandIn, Environ, StartResponse, str], Iterable[bytes]]
ROUTES: dict[tuple[str, str], Route] = {
    ("POST", "/v1/messages"): StandIn.messages,
    ("POST", CHAT): StandIn.chat,
    ("GET", "/v1/models"): StandIn.models,
    ("GET", "/healthz"): StandIn.health,
    ("GET", "/standin/requests"): StandIn.requests,
    ("DELETE", "/standin/requests"): StandIn.forget_requests,
}
