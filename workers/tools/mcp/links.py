"""An open connection to a server, and the delivery of its current request.

The SDK raises the same errors for a server's own response and for a lost connection. Only the transport can tell them apart. So the
transport records here if a byte of the request left, which HTTP status came back, and if the response came whole. Without these
records no call could end as "nothing began" or as the server's own error: each failed call would be `unknown` and need a person.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

from mcp.client.session import ClientSession
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from workers.guarded_http import TooLong
from workers.tools.mcp.servers import Server
from workers.tools.output import OutputSoFar

REJECTED = frozenset({307, 308, 400, 401, 403, 404, 405, 410, 411, 413, 414, 415, 421, 426, 428, 429, 431})
"""HTTP statuses that say that the server did nothing, by RFC 9110 and RFC 6585.

All others leave open what a server did with a request that was sent: gateways give up on a request that the server continues (408,
499, 5xx), a request may be replayed (425), forms redirect after their effect (301 to 303), and the rest (406, 409, 422) describe
something else.
"""

_ids = itertools.count(1)


@dataclass(eq=False)
class Exchange:
    """One request and its response."""

    output: OutputSoFar | None = None
    """Where progress and log messages go; None for requests that are not calls."""
    may_have_arrived: bool = False
    """True once a byte of the request, or of an earlier request of the same call, may have reached the server."""
    request_id: str = field(default_factory=lambda: f"call-{next(_ids)}")
    """The JSON-RPC id of a call."""
    status: int | None = None
    """The HTTP status."""
    has_response: bool = False
    """HTTP only: the response carries the protocol's own response to this request, and did not break off."""
    error: Exception | None = None
    """The failure below HTTP."""

    @property
    def too_long(self) -> bool:
        """True if the response exceeds `mcp_response_bytes`."""
        return isinstance(self.error, TooLong)

    def show(self, stream: str, line: str) -> None:
        """Add a line to the call's output so far."""
        if self.output is not None:
            self.output.add(stream, f"{line}\n".encode(errors="replace"))

    async def trace(self, event: str, _info: dict[str, Any]) -> None:
        """Note that the request leaves, as httpcore's trace hook."""
        if event.endswith("send_request_headers.started"):
            self.may_have_arrived = True


@dataclass(eq=False)
class ServerLink:
    """An open connection. It serves one call at a time."""

    server: Server
    session: ClientSession = field(init=False)
    exchange: Exchange = field(default_factory=Exchange)
    """The current request, or the last one."""
    over: bool = False
    """True once the connection is lost."""
    broken: bool = False
    """True if no further call may use the connection."""

    @property
    def modern(self) -> bool:
        """True if each request stands alone, so that a question to people can wait without a connection."""
        return self.session.protocol_version in MODERN_PROTOCOL_VERSIONS
