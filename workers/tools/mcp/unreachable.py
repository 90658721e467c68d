"""Why there is no connection to a server, in words for people."""

import ssl
from typing import Literal

import httpcore2
import httpx2

from models.settings import settings
from workers.guarded_http import Refused
from workers.tools.mcp.flights import Flight
from workers.tools.mcp.servers import Server

REFUSED = frozenset({401, 403})
"""By HTTP: who we are is wrong or missing."""


class Unreachable(Exception):
    """There is no connection to the server, in words for people, without secrets."""

    def __init__(self, kind: Literal["connection", "authentication"], message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def unreachable(server: Server, flight: Flight, error: Exception) -> Unreachable:
    """Why there is no connection."""
    if flight.status in REFUSED:
        return Unreachable("authentication", f"{server.label} refuses us (HTTP {flight.status}): {remedy(server)}")
    return Unreachable("connection", f"{server.label} cannot be reached: {_reason(server, flight, flight.error or error)}")


def remedy(server: Server) -> str:
    """What to do about a server that refuses us."""
    if server.ours:
        return "the operator must check its headers in ASSENT_MCP_CONFIG"
    return "it wants authentication, which an operator can configure for this URL in ASSENT_MCP_CONFIG"


def _reason(server: Server, flight: Flight, error: Exception) -> str:
    known = [words for cause in _causes(error) if (words := _words(cause))]
    if known:
        return known[0]
    if isinstance(error, httpx2.HTTPError):
        return str(error) or type(error).__name__
    if server.command is not None:
        return "its command could not be started, or ended, or does not speak MCP; the worker's log has what it said"
    if flight.status is not None and flight.status >= 300:
        return f"it answers with HTTP {flight.status}"
    return f"it does not speak MCP ({type(error).__name__})"


def _words(cause: BaseException) -> str | None:
    match cause:
        case Refused():
            return str(cause)
        case ssl.SSLCertVerificationError():
            return f"its certificate is not good ({cause.verify_message})"
        case ssl.SSLError():
            return "TLS failed"
        case ConnectionRefusedError():
            return "nobody listens there"
        case TimeoutError() | httpx2.TimeoutException() | httpcore2.TimeoutException():
            return f"it took longer than {settings().mcp_connect_seconds:g} s"
    return None


def _causes(error: BaseException | None) -> list[BaseException]:
    """The error and what caused it, groups opened."""
    found: list[BaseException] = []
    todo = [error]
    while todo:
        one = todo.pop()
        if one is None or one in found:
            continue
        found.append(one)
        todo += [one.__cause__, one.__context__, *(one.exceptions if isinstance(one, BaseExceptionGroup) else ())]
    return found
