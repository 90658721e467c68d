"""A model whose stream ends where a test wants it to: it speaks just enough of both wires, and says one scripted thing."""

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from deploy.standin import chat_writing, writing
from deploy.standin.script import Block, Reply

USAGE = {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
PLACES = {
    "inside a line": {"anthropic": b'partial_json":"', "openai": b'"arguments":"'},
    "inside the input": {"anthropic": b"event: content_block_delta", "openai": b'"arguments":"'},
    "behind the whole input": {"anthropic": b"event: content_block_stop", "openai": b'"finish_reason":"tool_calls"'},
    "behind the call": {"anthropic": b"event: message_delta"},
    "before the last word": {"anthropic": b"event: message_stop"},
}
"""Where the stream ends, by wire: before the last event with this, or `inside a line` behind it. Chat Completions have no event
between a whole input and the last word that counts."""
MODELS = {"anthropic": "claude-1", "openai": "llama-4"}
"""By wire."""
WAYS = ("reset", "hung up", "ended in order", "an error event")
"""How it ends."""


@dataclass
class CutModel:
    """What it calls, where it is cut, and who asked how often."""

    command: str = ""
    place: str = ""
    url: str = ""
    tries: dict[tuple[str, str], int] = field(default_factory=dict)
    """By the wire and the way in which the first try is cut: the prompt says it."""
    whole: threading.Event = field(default_factory=threading.Event)
    """Until this is set, whoever asks again waits."""

    def reply(self, wire: str) -> bytes:
        """The whole stream: a text, then the call."""
        blocks = [Block("text", "Let me see."), Block("tool_use", json.dumps({"command": self.command}), "bash")]
        return self._stream(wire, Reply(blocks, stop_reason="tool_use"))

    def done(self, wire: str) -> bytes:
        """What it says once it has the result."""
        return self._stream(wire, Reply([Block("text", "Done.")]))

    def _stream(self, wire: str, reply: Reply) -> bytes:
        stream = writing.stream if wire == "anthropic" else chat_writing.stream
        pieces = stream(writing.write(reply, 1000, None), "model", USAGE, None)
        return b"".join(piece for piece in pieces if isinstance(piece, bytes))

    def cut(self, wire: str) -> bytes:
        """The stream up to where it ends too early."""
        reply, mark = self.reply(wire), PLACES[self.place][wire]
        at = reply.rindex(mark)
        return reply[: at + len(mark) if self.place == "inside a line" else reply.rindex(b"\n\n", 0, at) + 2]


_ERROR_EVENTS = {
    "anthropic": writing.error_event("overloaded_error", 529, "Overloaded"),
    "openai": chat_writing.error_event("overloaded_error", 529, "Overloaded"),
}


class _Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: CutModel

    def do_POST(self) -> None:
        """`/v1/messages` and `/v1/chat/completions`, streamed."""
        wire = "openai" if self.path.endswith("/chat/completions") else "anthropic"
        messages = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        # Else whoever asks again might take a connection that is about to be closed, and that would be a try more.
        self.send_header("connection", "close")
        self.end_headers()
        if len(messages) > 1:
            self._say(self.model.done(wire), b"0\r\n\r\n")
            return
        content = messages[0]["content"]
        way = content if isinstance(content, str) else content[0]["text"]
        key = wire, way
        self.model.tries[key] = self.model.tries.get(key, 0) + 1
        if self.model.tries[key] > 1:
            self.model.whole.wait(30)
            self._say(self.model.reply(wire), b"0\r\n\r\n")
            return
        self._cut(self.model.cut(wire), way, _ERROR_EVENTS[wire])

    def _cut(self, head: bytes, way: str, error_event: bytes) -> None:
        self.close_connection = True
        if way == "an error event":
            self._say(head + b"\n\n" + error_event, b"0\r\n\r\n")
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
