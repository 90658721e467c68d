"""A model that cuts its stream where a test says, on both wires. It replies with a text and one tool call."""

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
from deploy.standin.script import Block, ScriptedReply

USAGE = {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
PLACES = {
    "inside a line": {"anthropic": b'partial_json":"', "openai": b'"arguments":"'},
    "inside the input": {"anthropic": b"event: content_block_delta", "openai": b'"arguments":"'},
    "behind the whole input": {"anthropic": b"event: content_block_stop", "openai": b'"finish_reason":"tool_calls"'},
    "behind the call": {"anthropic": b"event: message_delta"},
    "before the last word": {"anthropic": b"event: message_stop"},
}
"""The text that marks the cut, by wire. The stream ends before the last event with the text, or `inside a line` behind the text.
Chat Completions have no event between a whole input and `finish_reason`."""
MODELS = {"anthropic": "claude-1", "openai": "llama-4"}
"""The model that each wire serves."""
WAYS = ("reset", "hung up", "ended in order", "an error event")
"""How the stream ends."""


@dataclass
class CutModel:
    """The command to call, the place of the cut, and the number of requests."""

    command: str = ""
    place: str = ""
    url: str = ""
    tries: dict[tuple[str, str], int] = field(default_factory=dict)
    """Requests by the wire and the way in which the first one is cut. The prompt names the way."""
    whole: threading.Event = field(default_factory=threading.Event)
    """Until this is set, a second request waits."""

    def reply(self, wire: str) -> bytes:
        """The whole stream of a text and the call."""
        blocks = [Block("text", "Let me see."), Block("tool_use", json.dumps({"command": self.command}), "bash")]
        return self._stream(wire, ScriptedReply(blocks, stop_reason="tool_use"))

    def done(self, wire: str) -> bytes:
        """The whole stream of the reply to the result."""
        return self._stream(wire, ScriptedReply([Block("text", "Done.")]))

    def _stream(self, wire: str, reply: ScriptedReply) -> bytes:
        stream = writing.stream if wire == "anthropic" else chat_writing.stream
        pieces = stream(writing.write(reply, 1000, None), "model", USAGE, None)
        return b"".join(piece for piece in pieces if isinstance(piece, bytes))

    def cut(self, wire: str) -> bytes:
        """The stream up to the cut."""
        reply, mark = self.reply(wire), PLACES[self.place][wire]
        at = reply.rindex(mark)
        return reply[: at + len(mark) if self.place == "inside a line" else reply.rindex(b"\n\n", 0, at) + 2]


_ERROR_EVENTS = {
    "anthropic": writing.error_event("overloaded_error", 529, "Overloaded"),
    "openai": chat_writing.error_event("overloaded_error", 529, "Overloaded"),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: CutModel

    def do_POST(self) -> None:
        """`/v1/messages` and `/v1/chat/completions`, streamed."""
        wire = "openai" if self.path.endswith("/chat/completions") else "anthropic"
        messages = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        # Otherwise a retry could take a connection that is about to close, and would count as one try more.
        self.send_header("connection", "close")
        self.end_headers()
        if len(messages) > 1:
            self._write(self.model.done(wire), b"0\r\n\r\n")
            return
        content = messages[0]["content"]
        way = content if isinstance(content, str) else content[0]["text"]
        key = wire, way
        self.model.tries[key] = self.model.tries.get(key, 0) + 1
        if self.model.tries[key] > 1:
            self.model.whole.wait(30)
            self._write(self.model.reply(wire), b"0\r\n\r\n")
            return
        self._cut(self.model.cut(wire), way, _ERROR_EVENTS[wire])

    def _cut(self, head: bytes, way: str, error_event: bytes) -> None:
        self.close_connection = True
        if way == "an error event":
            self._write(head + b"\n\n" + error_event, b"0\r\n\r\n")
        elif way == "ended in order":
            self._write(head, b"0\r\n\r\n")
        else:
            self._write(head, b"")
        if way == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def _write(self, data: bytes, end: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n%s" % (len(data), data, end))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of the class above
        """Print nothing."""


@contextmanager
def cut_model() -> Iterator[CutModel]:
    """Serve a model until the block ends."""
    model = CutModel()
    handler = type("Handler", (_Handler,), {"model": model})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        model.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield model
        model.whole.set()
        server.shutdown()
        thread.join(5)
