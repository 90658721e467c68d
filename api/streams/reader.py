"""Readers: one for each open stream or page, with the deltas that wait to be sent."""

import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import gevent
from flask import request
from gevent import monkey

from models.audit.principal import Principal
from models.people.principal import PersonPrincipal
from models.people.sign_in import Standing
from models.session.thread.row import own_id

Frame = dict[str, Any]
"""A delta in the API's form, with an `offset`: the number of the message's characters before the delta. Clients get no `offset`."""

SO_FAR = "so_far"
"""Type of a frame that no client gets. It has the `frames` of a whole preview so far, for streams in which none has begun."""
FRAMES = 1000
"""Most deltas that wait for one reader."""
_CLOSED = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
"""The client has closed its connection, or its sending side."""
_READABLE = 1
"""What a watcher of gevent's loop waits for."""
PIECE = 65_536
"""Bytes per write. A client that reads fewer within `stream_write_seconds` is disconnected."""


@dataclass(eq=False)
class Reader:
    """One open stream, as the hub knows it. `seq` is the stream's position, which only the stream changes."""

    session_id: str
    """The session whose events are read or, for a page, the workspace whose approvals are watched."""
    key_id: str
    """The id of the API key or the person that reads."""
    seq: int = 0
    thread_id: str = ""
    """The thread whose events and deltas are read. Empty for a page."""
    deltas: bool = False
    gone: bool = False
    """The session was deleted."""
    refused: bool = False
    """The key was revoked, the sign-in has ended, or the person's role or groups have changed."""
    has_no_client: bool = False
    """The client has closed its connection while the stream waited."""
    overrun: bool = False
    """Deltas were dropped, so the previews that have begun cannot be continued."""
    look: bool = False
    """True if there may be events after `seq`."""
    sign_in_id: str = ""
    """For a person: the sign-in that must stay open."""
    standing: Standing | None = None
    """For a person: the role and groups at the stream's beginning. The stream ends when they change."""
    workspace_id: str = ""
    """For a person: the workspace of the sign-in."""
    mark: str = ""
    """For a page: the workspace's `Approval.mark` when the hub last read it."""
    connection: socket.socket | None = None
    """The connection to the client, if the server exposes it."""
    writing: float = 0
    """The time, by the process's monotonic clock, since which the present write waits for the client. 0 without a write."""
    frames: deque[Frame] = field(default_factory=deque)
    wake: threading.Event = field(default_factory=threading.Event)
    ready: threading.Event = field(default_factory=threading.Event)
    _watcher: Any = None
    """gevent's watcher of the connection."""

    @classmethod
    def of(cls, principal: Principal, session_id: str, thread_id: str | None = None, **position: Any) -> Self:
        """Return the reader of this request: of a thread, or of the session's own thread, which is the session's stream.

        A person's stream ends with the person's sign-in, role or groups.
        """
        connection = request.environ.get("gunicorn.socket")
        reader = cls(session_id, principal.id, thread_id=thread_id or own_id(session_id), connection=connection, **position)
        if isinstance(principal, PersonPrincipal):
            reader.sign_in_id, reader.workspace_id = principal.sign_in_id, principal.workspace_id
            reader.standing = (principal.role, principal.group_ids)
        return reader

    def pieces(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the frames piece by piece. The server requests the next piece once the client's connection has accepted one."""
        for frame in frames:
            for start in range(0, len(frame), PIECE):
                self.writing = time.monotonic()
                yield frame[start : start + PIECE]
                self.writing = 0

    def receive(self, frames: list[Frame], thread_id: str, seq: int | None) -> None:
        """Take a note: with deltas of a thread, or empty if there are new events up to the number `seq`. None: nobody knows it."""
        if frames and thread_id != self.thread_id:
            return
        if frames[0]["type"] == "event_start" if frames else seq is None or seq > self.seq:
            self.look = True  # stored events come before the preview
        for frame in frames if self.deltas else ():
            if len(self.frames) >= FRAMES:
                self.frames.clear()
                self.overrun = True
            self.frames.append(frame)
        if self.look or self.frames:
            self.wake.set()

    @property
    def is_page(self) -> bool:
        """True for an open page, which watches a workspace."""
        return self.session_id == self.workspace_id

    def watch(self) -> None:
        """Set `has_no_client` and wake the reader once the client closes its connection. No-op if the server does not expose it.

        A client that sends more on the connection is not watched any further: the next write notices its end.
        """
        if self.connection is not None:
            self._watcher = gevent.get_hub().loop.io(self.connection.fileno(), _READABLE)
            self._watcher.start(self._look_at_connection)

    def _look_at_connection(self) -> None:
        self.unwatch()
        self.has_no_client = self.hung_up()
        if self.has_no_client:
            self.wake.set()

    def unwatch(self) -> None:
        """Stop to watch the connection. Idempotent."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()

    def hung_up(self) -> bool:
        """True if the client has closed its connection. False if the server does not expose the connection."""
        if self.connection is None:
            return False
        poll = monkey.get_original("select", "poll")()  # gevent's poll supports neither POLLHUP nor POLLRDHUP
        poll.register(self.connection, _CLOSED)
        return bool(poll.poll(0))

    def disconnect(self) -> None:
        """Close the connection. Data that the client has not read is discarded."""
        if self.connection is None:
            return
        # A duplicate, because gevent would report a shutdown of the socket itself as a broken descriptor.
        with suppress(OSError), self.connection.dup() as duplicate:
            duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            duplicate.shutdown(socket.SHUT_RDWR)
