"""The outcome of a call: a result, a question for people, an error that ended the call, or unknown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from models.pure.json.fitting import misfit
from models.settings import settings
from workers.tools.clean import text_block
from workers.tools.kinds import ToolQuestion, ToolResult, text_result
from workers.tools.mcp.content import blocks, is_storable
from workers.tools.mcp.links import REJECTED, Exchange, ServerLink
from workers.tools.mcp.servers import Server
from workers.tools.mcp.unreachable import REFUSED, remedy
from workers.tools.output import OutcomeUnknown

ServerResult = types.CallToolResult | types.InputRequiredResult

_MESSAGE = 2000


@dataclass(frozen=True)
class ServerResponse:
    """The end of one request: a result, or an error."""

    link: ServerLink
    exchange: Exchange
    result: ServerResult | None = None
    error: Exception | None = None
    unanswerable: bool = False
    """True if the call carries answers to a question, and the server's version of the protocol has no place for them any more."""

    @property
    def is_final(self) -> bool:
        """True if the error is the server's own response, and not the SDK's error for a lost connection."""
        if not isinstance(self.error, MCPError):
            return False
        if self.link.server.url is None:
            return self.error.code != types.CONNECTION_CLOSED or not self.link.over
        return self.exchange.has_response and self.error.code != types.PARSE_ERROR


def failed(server: Server, why: str) -> ToolResult:
    """Return an error result for the model: the call has ended."""
    return text_result(f"{server.label}: {why}", is_error=True)


def outcome(server: Server, entry: Mapping[str, Any], reply: ServerResponse) -> ToolResult:
    """Return the result of a call. Raises OutcomeUnknown."""
    if reply.unanswerable:
        return failed(server, "the question cannot be answered any more: the server now speaks an older version of the protocol")
    if isinstance(reply.result, types.InputRequiredResult):
        return _question(server, reply.result)
    if reply.result is not None:
        return _result(entry, reply.result)
    return _without_result(server, reply)


def _result(entry: Mapping[str, Any], result: types.CallToolResult) -> ToolResult:
    content, data = blocks(result), result.structured_content
    if data is None or not isinstance(data, dict):
        return ToolResult(content, result.is_error)
    problem = None if is_storable(data) else "the data cannot be stored"
    if problem is None and not result.is_error and (schema := entry.get("output_schema")):
        problem = misfit(schema, data)
    if problem is None:
        return ToolResult(content, result.is_error, data)
    return ToolResult([*content, text_block(f"[the result's data was left out: {problem}]")], result.is_error)


def _question(server: Server, result: types.InputRequiredResult) -> ToolResult:
    requests: dict[str, dict[str, Any]] = {}
    for key, request in (result.input_requests or {}).items():
        match request:
            case types.ElicitRequest(params=types.ElicitRequestURLParams() as page):
                requests[key] = {"message": page.message, "url": page.url}
            case types.ElicitRequest(params=types.ElicitRequestFormParams() as form):
                requests[key] = {"message": form.message, "schema": form.requested_schema}
            case _:
                return failed(server, f"the server asks for {request.method}, which is not offered here; the call has ended")
    if not is_storable([requests, result.request_state]):
        return failed(server, "the question cannot be stored; the call has ended")
    return ToolResult([], question=ToolQuestion(requests, result.request_state))


def _without_result(server: Server, reply: ServerResponse) -> ToolResult:
    exchange = reply.exchange
    if not exchange.may_have_arrived:
        return failed(server, "the connection failed before the call was sent; nothing began")
    if exchange.too_long:
        limit = settings().mcp_response_bytes
        return failed(server, f"the response was longer than {limit} bytes and was left out; the call may have had its effect")
    if exchange.status in REFUSED:
        return failed(server, f"the server refused the call (HTTP {exchange.status}): {remedy(server)}")
    if isinstance(reply.error, ValidationError):
        return failed(server, "the response does not follow the protocol and was left out; the call may have had its effect")
    if isinstance(reply.error, MCPError) and reply.is_final:
        return failed(server, reply.error.message[:_MESSAGE])
    if exchange.status in REJECTED:
        return failed(server, f"the server refused the call (HTTP {exchange.status})")
    raise OutcomeUnknown(f"the connection to {server.label} was lost before the call's result arrived")
