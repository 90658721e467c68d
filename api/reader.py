"""Readers: one for each open stream or page, with what waits to be sent on it."""

import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from api import arrival
from models.people.principal import PersonPrincipal
from models.people.sign_in import Standing

Frame = dict[str, Any]
"""A delta in the wire's form. Its `offset`, which no client gets, is the number of the message's characters before it."""

FRAMES = 1000
"""Most deltas that wait for one reader."""


@dataclass(eq=False)
class Reader:
    """One open stream, as the hub knows it. `seq` is the stream's position, which only the stream changes."""

    session_id: str
    """The session whose events are read or, for a page, the workspace whose approvals are watched."""
    key_id: str
    """Of the API key or the person that reads."""
    seq: int = 0
    deltas: bool = False
    gone: bool = False
    """The session was deleted."""
    refused: bool = False
    """The key was revoked, the sign-in has ended, or the person's role or groups have changed."""
    overrun: bool = False
    """Deltas were dropped, so the previews that have begun cannot be continued."""
    look: bool = False
    """True if there may be events after `seq`."""
    sign_in_id: str = ""
    """Of a person: the sign-in that must stay open."""
    standing: Standing | None = None
    """Of a person: the role and groups that opened the stream, which must stay the same."""
    workspace_id: str = ""
    """Of a person: where the sign-in is."""
    mark: str = ""
    """Of a page: `Approval.mark` at the hub's last look."""
    connection: socket.socket | None = None
    """The connection to the client, if the server exposes it."""
    writing: float = 0
    """The time at which a write began that the client has not read yet, by the process's monotonic clock; else 0."""
    frames: deque[Frame] = field(default_factory=deque)
    wake: threading.Event = field(default_factory=threading.Event)
    ready: threading.Event = field(default_factory=threading.Event)

    def watch(self, person: PersonPrincipal) -> None:
        """Have the stream end with the sign-in, the role or the groups of the person who opens it."""
        self.sign_in_id, self.workspace_id = person.sign_in_id, person.workspace_id
        self.standing = (person.role, person.group_ids)

    def tell(self, frames: list[Frame]) -> None:
        """Receive a note: with deltas, or empty if there are new events."""
        if not frames or frames[0]["type"] == "event_start":
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

    def hung_up(self) -> bool:
        """True if the client has closed its connection. False if the server does not expose the connection."""
        return self.connection is not None and arrival.has_closed(self.connection)

    def cut(self) -> None:
        """Close the connection. Data that the client has not read is discarded."""
        if self.connection is None:
            return
        # A duplicate, because gevent would report a shutdown of the socket itself as a broken descriptor.
        with suppress(OSError), self.connection.dup() as twin:
            twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            twin.shutdown(socket.SHUT_RDWR)
