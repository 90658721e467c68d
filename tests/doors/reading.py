"""A reader of server-sent events, in its own thread."""

import json
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2

SECONDS = 15
"""The longest wait for the next frame."""


@dataclass
class Frame:
    """One server-sent event."""

    event: str
    id: int | None
    data: dict[str, Any]


@dataclass
class Stream:
    """The frames and comments of one open stream."""

    response: httpx2.Response
    frames: "queue.Queue[Frame | None]" = field(default_factory=queue.Queue)
    comments: list[str] = field(default_factory=list)

    def read(self) -> None:
        """Read to the end of the stream, or to its failure."""
        with suppress(httpx2.HTTPError):
            self._read()
        self.frames.put(None)

    def _read(self) -> None:
        lines: dict[str, str] = {}
        for line in self.response.iter_lines():
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                name, _, value = line.partition(": ")
                lines[name] = value
            elif lines:
                number = int(lines["id"]) if "id" in lines else None
                self.frames.put(Frame(lines["event"], number, json.loads(lines["data"])))
                lines = {}

    def next(self) -> Frame:
        """Wait for the next frame."""
        frame = self.frames.get(timeout=SECONDS)
        assert frame is not None, "the stream ended"
        return frame

    def until(self, kind: str) -> list[Frame]:
        """Return all frames up to and including the first of this type."""
        frames = [self.next()]
        while frames[-1].event != kind:
            frames.append(self.next())
        return frames

    def rest(self) -> list[Frame]:
        """Return all frames up to the end of the stream."""
        frames = []
        while (frame := self.frames.get(timeout=SECONDS)) is not None:
            frames.append(frame)
        return frames


@contextmanager
def stream(client: httpx2.Client, session_id: str, last: int | None = None, path: str = "", **query: Any) -> Iterator[Stream]:
    """Open a stream, and wait for its headers. `path`: another stream than the session's events."""
    headers = {} if last is None else {"last-event-id": str(last)}
    path = path or f"/v1/sessions/{session_id}/events/stream"
    with client.stream("GET", path, params=query, headers=headers) as response:
        assert response.status_code == 200, response.read()
        reader = Stream(response)
        thread = threading.Thread(target=reader.read, daemon=True)
        thread.start()
        try:
            yield reader
        finally:
            # Closing the response does not wake the reading thread. Shutting down the socket does.
            with suppress(OSError):
                response.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            thread.join(5)
