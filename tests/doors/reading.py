"""A raw reader of server-sent events, in a thread of its own."""

import json
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

SECONDS = 15
"""A stream that says nothing for this long has lost something."""


@dataclass
class Frame:
    """One server-sent event."""

    event: str
    id: int | None
    data: dict[str, Any]


@dataclass
class Stream:
    """What came over one stream."""

    response: httpx.Response
    frames: "queue.Queue[Frame | None]" = field(default_factory=queue.Queue)
    comments: list[str] = field(default_factory=list)

    def read(self) -> None:
        """Read to the end, however it ends."""
        try:
            self._read()
        except httpx.HTTPError:
            pass
        finally:
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
        """The next frame."""
        frame = self.frames.get(timeout=SECONDS)
        assert frame is not None, "the stream ended"
        return frame

    def until(self, kind: str) -> list[Frame]:
        """All frames up to the first of this type, and that one."""
        found = [self.next()]
        while found[-1].event != kind:
            found.append(self.next())
        return found

    def rest(self) -> list[Frame]:
        """All frames up to the end of the stream."""
        found = []
        while (frame := self.frames.get(timeout=SECONDS)) is not None:
            found.append(frame)
        return found


@contextmanager
def stream(client: httpx.Client, session_id: str, last: int | None = None, path: str = "", **query: Any) -> Iterator[Stream]:
    """An open stream; its headers have arrived. `path`: that of another stream than the API's own."""
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
            # A thread that reads is not woken by closing the response, only by the end of the connection.
            with suppress(OSError):
                response.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            thread.join(5)
