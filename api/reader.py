"""Readers: one for each open stream or page, with what waits to be sent on it."""

import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from api import arrival

Frame = dict[str, Any]
"""A delta as the wire has it."""

FRAMES = 1000
"""Deltas that wait for one reader at most."""


@dataclass(eq=False)
class Reader:
    """One open stream, as the hub knows it. `seq` is the stream's own position, written by the stream alone."""

    session_id: str
    """The session whose events are read or, for a page, the workspace whose approvals are watched."""
    key_id: str
    """Of the API key or the person that reads."""
    seq: int = 0
    deltas: bool = False
    gone: bool = False
    """The session was deleted."""
    refused: bool = False
    """The key was revoked, or the sign-in has ended."""
    overrun: bool = False
    """Deltas were dropped: those under way cannot be shown any more."""
    look: bool = False
    """Whether there may be events beyond `seq`."""
    sign_in_id: str = ""
    """Of a person: the sign-in that must stay open."""
    workspace_id: str = ""
    """Of a person: where the sign-in is."""
    mark: str = ""
    """Of a page: `Approval.mark` at the hub's last look."""
    connection: socket.socket | None = None
    """To the client, where the server says which it is."""
    writing: float = 0
    """Since when what was sent waits to be taken, by the process's steady clock; 0 while nothing does."""
    frames: deque[Frame] = field(default_factory=deque)
    wake: threading.Event = field(default_factory=threading.Event)
    ready: threading.Event = field(default_factory=threading.Event)

    def tell(self, frames: list[Frame]) -> None:
        """A note came: with deltas, or without any, when there are new events."""
        if not frames or frames[0]["type"] == "event_start":
            self.look = True  # where a preview begins, what was stored before it comes first
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

    def hung_up(self) -> bool:
        """True if the client has closed its connection. False where the server does not say."""
        return self.connection is not None and arrival.has_closed(self.connection)

    def cut(self) -> None:
        """End the connection under whoever waits to write to it; what the client did not take is thrown away."""
        if self.connection is None:
            return
        # Its twin, because gevent would call a shutdown of the socket itself a broken descriptor, not a client that went.
        with suppress(OSError), self.connection.dup() as twin:
            twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            twin.shutdown(socket.SHUT_RDWR)
