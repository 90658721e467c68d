"""A model whose stream ends where a test wants it to: it speaks just enough of the Messages API, and says one scripted thing."""

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from deploy.standin import writing
from deploy.standin.script import Block, Reply

USAGE = {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
PLACES = {
    "inside a line": b'partial_json":"',
    "inside the input": b"event: content_block_delta",
    "behind the whole input": b'event: content_block_stop\ndata: {"type":"content_block_stop","index":1}',
    "behind the call": b"event: message_delta",
    "before the last word": b"event: message_stop",
}
"""Where the stream ends: before the last occurrence of this, which `inside a line` is in the middle of a line."""
WAYS = ("reset", "hung up", "ended in order", "an error event")
"""How it ends."""


@dataclass
class CutModel:
    """What it calls, where it is cut, and who asked how often."""

    command: str = ""
    place: str = ""
    url: str = ""
    tries: dict[str, int] = field(default_factory=dict)
    """By the way in which the first try is cut: the prompt says it."""
    whole: threading.Event = field(default_factory=threading.Event)
    """Until this is set, whoever asks again waits."""

    def reply(self) -> bytes:
        """The whole stream: a text, then the call."""
        blocks = [Block("text", "Let me see."), Block("tool_use", json.dumps({"command": self.command}), "bash")]
        return self._stream(Reply(blocks, stop_reason="tool_use"))

    def done(self) -> bytes:
        """What it says once it has the result."""
        return self._stream(Reply([Block("text", "Done.")]))

    def _stream(self, reply: Reply) -> bytes:
        page = writing.write(reply, 1000, None)
        return b"".join(piece for piece in writing.stream(page, "model", USAGE, None) if isinstance(piece, bytes))


class _Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: CutModel

    def do_POST(self) -> None:
        """`/v1/messages`, streamed."""
        messages = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        # Else whoever asks again might take a connection that is about to be closed, and that would be a try more.
        self.send_header("connection", "close")
        self.end_headers()
        if len(messages) > 1:
            self._say(self.model.done(), b"0\r\n\r\n")
            return
        way = messages[0]["content"][0]["text"]
        self.model.tries[way] = self.model.tries.get(way, 0) + 1
        reply = self.model.reply()
        if self.model.tries[way] > 1:
            self.model.whole.wait(30)
            self._say(reply, b"0\r\n\r\n")
            return
        mark = PLACES[self.model.place]
        at = reply.rindex(mark) + (len(mark) if self.model.place == "inside a line" else 0)
        self._cut(reply[:at], way)

    def _cut(self, head: bytes, way: str) -> None:
        self.close_connection = True
        if way == "an error event":
            self._say(head + b"\n\n" + writing.error_event("overloaded_error", "Overloaded"), b"0\r\n\r\n")
        elif way == "ended in order":
            self._say(head, b"0\r\n\r\n")
        else:
            self._say(head, b"")
        if way == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def _say(self, data: bytes, end: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n%s" % (len(data), data, end))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of the class above
        """Say nothing."""


@contextmanager
def cut_model() -> Iterator[CutModel]:
    """A model that is served until the block ends."""
    model = CutModel()
    door = type("Door", (_Door,), {"model": model})
    with ThreadingHTTPServer(("127.0.0.1", 0), door) as server:
        server.daemon_threads = True
        model.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield model
        model.whole.set()
        server.shutdown()
        thread.join(5)
