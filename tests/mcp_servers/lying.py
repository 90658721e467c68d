"""An HTTP server that speaks MCP until a test makes it answer something else."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from workers.tools.mcp.servers import Server

Answer = Callable[["Request"], None]
TOOL = {"name": "act", "inputSchema": {"type": "object"}}


class Request(BaseHTTPRequestHandler):
    """One exchange, with the ways to answer it."""

    protocol_version = "HTTP/1.1"
    message: dict[str, Any]
    liar: "Liar"

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        self.message = json.loads(self.rfile.read(length))
        self.liar.heard.append(
            (self.message.get("method"), self.message, {name.lower(): value for name, value in self.headers.items()})
        )
        self.liar.answers.get(str(self.message.get("method")), Request.accept)(self)

    def do_GET(self) -> None:
        self.liar.answers.get("GET", lambda request: request.plain(405))(self)

    def do_DELETE(self) -> None:
        self.plain(405)

    def accept(self) -> None:
        self.plain(202)

    def plain(self, status: int, body: bytes = b"", **headers: str) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            if not self.liar.keeps_connections:
                self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(body)

    def result(self, result: dict[str, Any], status: int = 200) -> None:
        response = {"jsonrpc": "2.0", "id": self.message["id"], "result": {"resultType": "complete", **result}}
        self.plain(status, json.dumps(response).encode(), content_type="application/json")

    def tools(self, *tools: dict[str, Any], **more: str) -> None:
        """A page of a listing."""
        self.result({"tools": list(tools), "ttlMs": 0, "cacheScope": "private", **more})

    def error(self, code: int, message: str, status: int = 200) -> None:
        response = {"jsonrpc": "2.0", "id": self.message["id"], "error": {"code": code, "message": message}}
        self.plain(status, json.dumps(response).encode(), content_type="application/json")

    def events(self, *events: bytes) -> None:
        """A stream of events that ends after these."""
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in events:
                self.wfile.write(event)
        self.close_connection = True

    def hang_up(self) -> None:
        """Close the connection without an answer."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        pass


class Liar:
    """The server: its `answers` by method, and the requests that it `heard`."""

    def __init__(self, *, legacy: bool = False, context: ssl.SSLContext | None = None) -> None:
        self.keeps_connections = True
        self.heard: list[tuple[str | None, dict[str, Any], dict[str, str]]] = []
        self.answers: dict[str, Answer] = {"tools/list": lambda request: request.tools(TOOL)}
        self.speak(legacy=legacy)
        handler = type("Handler", (Request,), {"liar": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{self.port}/mcp"

    def speak(self, *, legacy: bool) -> None:
        """Speak only the versions with a handshake (`legacy`), or all."""
        about: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "liar", "version": "1"}}
        old = {"protocolVersion": "2025-11-25", **about}
        new = {"supportedVersions": ["2026-07-28"], **about, "ttlMs": 0, "cacheScope": "private"}
        self.answers["server/discover"] = (lambda request: request.plain(400)) if legacy else (lambda request: request.result(new))
        self.answers["initialize"] = lambda request: request.result(old)

    def on_greeting(self, answer: Answer) -> None:
        """Answer the first request of a connection, in all versions of the protocol."""
        self.answers["server/discover"] = self.answers["initialize"] = answer

    def on_call(self, answer: Answer) -> None:
        self.answers["tools/call"] = answer

    @property
    def server(self) -> Server:
        """This server, as one of the operator's."""
        return Server("liar", self.url, ours=True)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls that reached it."""
        return [message for method, message, _ in self.heard if method == "tools/call"]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
