"""A client that opens a stream with a small receive buffer, and reads only when a test calls `read`."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

SECONDS = 20
FRAME = re.compile(rb"event: (\S+)\nid: (\d+)\ndata: (.*)\n\n")


class Slow:
    """One stream over a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.raw = b""

    def read(self, size: int) -> bytes:
        """Read `size` bytes, or fewer at the end of the connection."""
        data = b""
        while len(data) < size:
            piece = self.sock.recv(min(65536, size - len(data)))
            if not piece:
                break
            data += piece
        self.raw += data
        return data

    def rest(self) -> None:
        """Read to the end of the connection, or to a reset."""
        with suppress(ConnectionError):
            while self.read(65536):
                pass

    @property
    def frames(self) -> list[tuple[int, dict[str, Any]]]:
        """The complete frames so far, each with its number."""
        body = self.raw.partition(b"\r\n\r\n")[2]
        text = b""
        while body:  # chunked transfer coding
            size, _, body = body.partition(b"\r\n")
            text += body[: int(size, 16)]
            body = body[int(size, 16) + 2 :]
        return [(int(number), json.loads(data)) for _, number, data in FRAME.findall(text)]


@contextmanager
def slow_stream(url: str, key: str, session_id: str, last: int) -> Iterator[Slow]:
    """Open a stream without reading it."""
    with slow_get(url, f"/v1/sessions/{session_id}/events/stream", f"x-api-key: {key}", f"last-event-id: {last}") as slow:
        yield slow


@contextmanager
def slow_get(url: str, path: str, *headers: str, times: int = 1) -> Iterator[Slow]:
    """Send a request, perhaps several times, without reading a response."""
    at = urlsplit(url)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.settimeout(SECONDS)
        sock.connect((at.hostname, at.port))
        request = "\r\n".join([f"GET {path} HTTP/1.1", f"host: {at.netloc}", *headers, "", ""])
        sock.sendall(request.encode() * times)
        yield Slow(sock)
