"""The reason why there is no connection to a server, in words for people."""

import ssl
from typing import Literal

import httpx2

from models.settings import settings
from workers.guarded_http import UrlRefused
from workers.tools.mcp.links import Exchange
from workers.tools.mcp.servers import Server

REFUSED = frozenset({401, 403})
"""HTTP statuses for credentials that are wrong or missing."""


class Unreachable(Exception):
    """There is no connection to the server. The message is for people and holds no secrets."""

    def __init__(self, kind: Literal["connection", "authentication"], message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def unreachable(server: Server, exchange: Exchange, error: Exception) -> Unreachable:
    """Return the exception for a connection that failed with `error`, after the last `exchange`."""
    if exchange.status in REFUSED:
        return Unreachable("authentication", f"{server.label} refuses the credentials (HTTP {exchange.status}): {remedy(server)}")
    return Unreachable("connection", f"{server.label} cannot be reached: {_reason(server, exchange, exchange.error or error)}")


def remedy(server: Server) -> str:
    """Return the remedy for a server that refuses the credentials."""
    if server.ours:
        return "the operator must check its headers in ASSENT_MCP_CONFIG"
    return "an operator can configure credentials for this URL in ASSENT_MCP_CONFIG"


def _reason(server: Server, exchange: Exchange, error: Exception) -> str:
    for cause in _causes(error):
        if reason := _known_reason(cause):
            return reason
    if isinstance(error, httpx2.HTTPError):
        return str(error) or type(error).__name__
    if server.command is not None:
        return "the command could not be started, or ended, or does not speak MCP; the worker's standard error has its output"
    if exchange.status is not None and exchange.status >= 300:
        return f"the response was HTTP {exchange.status}"
    return f"the server does not speak MCP ({type(error).__name__})"


def _known_reason(cause: BaseException) -> str | None:
    match cause:
        case UrlRefused():
            return str(cause)
        case ssl.SSLCertVerificationError():
            return f"the certificate is not valid ({cause.verify_message})"
        case ssl.SSLError():
            return "TLS failed"
        case ConnectionRefusedError():
            return "the connection was refused"
        case TimeoutError() | httpx2.TimeoutException():
            return f"no response within {settings().mcp_connect_seconds:g} s"
    return None


def _causes(error: BaseException | None) -> list[BaseException]:
    """Yield the error and its causes, with groups opened."""
    causes: list[BaseException] = []
    rest = [error]
    while rest:
        cause = rest.pop()
        if cause is None or cause in causes:
            continue
        causes.append(cause)
        rest += [cause.__cause__, cause.__context__, *(cause.exceptions if isinstance(cause, BaseExceptionGroup) else ())]
    return causes
