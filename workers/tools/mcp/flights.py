"""What is known of one request on its way: whether it was sent, and whether the server answered.

Whoever asks sets `current`; the transports, whose tasks inherit it, find it there.
"""

import itertools
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx2

from workers.tools.output import OutputSoFar

REJECTED = {
    307: "the resource is elsewhere, and the same request must be sent there",
    308: "the resource is elsewhere for good, and the same request must be sent there",
    400: "the server cannot or will not process the request",
    401: "the request lacks credentials",
    403: "the server refuses to fulfil the request",
    404: "there is no such resource; in MCP, no such session",
    405: "the resource does not take this method",
    410: "the resource is gone",
    411: "the server does not accept a request without its length",
    413: "the server does not process a body of this size",
    414: "the server does not read a URL of this length",
    415: "the server does not read a body of this type",
    421: "the server does not answer for this host",
    426: "the server does not perform the request over this protocol",
    428: "the server takes no request without a precondition",
    429: "the rate limit turned the request away",
    431: "the server does not process headers of this size",
}
"""The statuses of HTTP that say that nothing of a request was done, by RFC 9110 and RFC 6585.

All others leave open what was done once a request was sent: gateways give up on a request that the server goes on with (408,
499, 5xx), a request may be replayed (425), forms redirect after their effect (301 to 303), and the rest (406, 409, 422) describe
something else.
"""

_ids = itertools.count(1_000_000)  # beyond those that the SDK gives


@dataclass(eq=False)
class Flight:
    """One request, over however many exchanges."""

    output: OutputSoFar | None = None
    """Where progress and log messages go; none for what is not a call."""
    request_id: int = field(default_factory=lambda: next(_ids))
    sent: bool = False
    """A byte of it may have reached the server."""
    given_up: bool = False
    """It was not sent, and must not be any more."""
    stopping: bool = False
    """The server was told to stop: from then on an error says that it has, perhaps, and nothing of what it has done."""
    status: int | None = None
    """Of HTTP."""
    answered: bool = False
    """The protocol's own answer came, whole."""
    streaming: bool = False
    """The answer comes as events."""
    broken: bool = False
    """What came last ended before its time."""
    too_long: bool = False
    error: Exception | None = None
    """What went wrong below HTTP."""

    def again(self, *, begun: bool) -> None:
        """A further request of the same call. `begun`: the server has begun, so that it counts as sent already."""
        self.request_id = next(_ids)
        self.sent = begun
        self.status, self.error = None, None
        self.answered = self.streaming = self.broken = False

    async def trace(self, event: str, _info: dict[str, Any]) -> None:
        """Told by httpcore as it goes: from the first byte of the request on, it may have arrived."""
        if event.endswith("send_request_headers.started"):
            if self.given_up:
                raise httpx2.ConnectError("the request was given up")
            self.sent = True

    def give_up(self) -> bool:
        """Whether it was not sent; then it never will be."""
        self.given_up = not self.sent
        return self.given_up

    def print(self, stream: str, line: str) -> None:
        """Show whoever watches the call what the server says meanwhile."""
        if self.output is not None:
            self.output.add(stream, f"{line}\n".encode(errors="replace"))

    @property
    def is_call(self) -> bool:
        """Whether it is a call of a tool, and not of those requests that keep a connection going."""
        return self.output is not None

    @property
    def settled(self) -> bool:
        """Whether an error that came back is the server's own, so that nothing of the call goes on."""
        return self.answered or (self.streaming and not self.broken)

    @property
    def rejected(self) -> bool:
        """True if the status says that the HTTP server did nothing."""
        return self.status in REJECTED


current: ContextVar[Flight | None] = ContextVar("flight", default=None)
