"""An HTTP server in the place of a customer's endpoint. It keeps the requests and responds as a test says, also badly."""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat


@dataclass
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: str


@dataclass
class Receiver:
    """Responds with `status`, and with the header `location` if it is not empty, once `may_answer` is set."""

    url: str = ""
    status: int = 200
    location: str = ""
    judge: Callable[[Received], int] | None = None
    """Returns the status of the response instead."""
    stream: Callable[[], Iterator[bytes]] | None = None
    """Returns the bytes of the response instead, which may never end."""
    requests: list[Received] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when the client closed the connection in the middle of `stream`."""


@contextmanager
def receiving(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver on loopback; with a context, over TLS."""
    receiver = Receiver()
    receiver.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode(errors="surrogateescape")
            request = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            receiver.requests.append(request)
            receiver.may_answer.wait(30)
            if receiver.stream:
                self.close_connection = True
                self._pour(receiver.stream())
                return
            self.send_response(receiver.judge(request) if receiver.judge else receiver.status)
            if receiver.location:
                self.send_header("location", receiver.location)
            self.send_header("content-length", "6")
            self.end_headers()
            self.wfile.write(b"secret")

        def _pour(self, parts: Iterator[bytes]) -> None:
            try:
                for part in parts:
                    self.wfile.write(part)
            except OSError:
                receiver.hung_up.set()

        def log_message(self, *_: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    receiver.url = f"http{'s' if context else ''}://127.0.0.1:{server.server_address[1]}/hook"
    try:
        yield receiver
    finally:
        receiver.may_answer.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Print nothing when a client hangs up."""


def endless_body() -> Iterator[bytes]:
    """A response whose body never ends."""
    return chain([b"HTTP/1.1 200 OK\r\n\r\n"], repeat(b"x" * 65_536))


def endless_headers() -> Iterator[bytes]:
    """A response whose headers never end."""
    return chain([b"HTTP/1.1 200 OK\r\n"], repeat(b"x-more: " + b"x" * 1000 + b"\r\n"))


def dripping() -> Iterator[bytes]:
    """A response that comes byte by byte, and never as far as its status."""
    for byte in repeat(b"H"):
        yield byte
        time.sleep(0.02)
