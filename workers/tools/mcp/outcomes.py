"""What came of a call: a result, a question for people, an error that ended it, or nobody knows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from models.pure.fitting import misfit
from models.pure.storable import is_storable
from models.settings import settings
from workers.tools.errors import OutcomeUnknown
from workers.tools.kinds import Question, ToolResult, text_result
from workers.tools.mcp.connecting import Link
from workers.tools.mcp.content import blocks
from workers.tools.mcp.flights import Flight
from workers.tools.mcp.servers import Server
from workers.tools.mcp.unreachable import REFUSED, remedy

Answer = types.CallToolResult | types.InputRequiredResult

_MESSAGE = 2000


@dataclass(frozen=True)
class Sent:
    """What came back over a connection: an answer, or why there is none."""

    link: Link
    answer: Answer | None = None
    error: Exception | None = None
    unanswerable: bool = False
    """The call has answers to a question, and the server speaks a version of the protocol that has no place for them any more."""


def failed(server: Server, why: str) -> ToolResult:
    """The call has ended, in plain words for the model."""
    return text_result(f"{server.label}: {why}", is_error=True)


def outcome(server: Server, entry: Mapping[str, Any], flight: Flight, sent: Sent) -> ToolResult:
    """Errors: OutcomeUnknown."""
    if sent.unanswerable:
        return failed(server, "its question cannot be answered any more: it now speaks an older version of the protocol")
    if isinstance(sent.answer, types.InputRequiredResult):
        return _asked(server, sent.answer)
    if sent.answer is not None:
        return _finished(entry, sent.answer)
    return _without_answer(server, flight, sent)


def _finished(entry: Mapping[str, Any], answer: types.CallToolResult) -> ToolResult:
    content, data = blocks(answer), answer.structured_content
    if data is None or not isinstance(data, dict):
        return ToolResult(content, answer.is_error)
    why = None if is_storable(data) else "it holds what cannot be stored"
    if why is None and not answer.is_error and (schema := entry.get("output_schema")):
        why = misfit(schema, data)
    if why is None:
        return ToolResult(content, answer.is_error, data)
    note = {"type": "text", "text": f"[the result's data was left out: {why}]"}
    return ToolResult([*content, note], answer.is_error)


def _asked(server: Server, answer: types.InputRequiredResult) -> ToolResult:
    requests: dict[str, dict[str, Any]] = {}
    for key, request in (answer.input_requests or {}).items():
        match request:
            case types.ElicitRequest(params=types.ElicitRequestURLParams() as asked):
                requests[key] = {"message": asked.message, "url": asked.url}
            case types.ElicitRequest(params=types.ElicitRequestFormParams() as asked):
                requests[key] = {"message": asked.message, "schema": asked.requested_schema}
            case _:
                return failed(server, f"it asks for {request.method}, which is not offered here; the call has ended")
    if not is_storable([requests, answer.request_state]):
        return failed(server, "its question holds what cannot be stored; the call has ended")
    return ToolResult([], question=Question(requests, answer.request_state))


def _without_answer(server: Server, flight: Flight, sent: Sent) -> ToolResult:
    if not flight.sent:
        return failed(server, "the connection failed before the call was sent; nothing began")
    if flight.stopping:
        raise OutcomeUnknown(f"the call was cancelled, and {server.label} has not said how it ended")
    if flight.too_long or (sent.link.pipes is not None and sent.link.pipes.too_long):
        return failed(
            server, f"its answer was longer than {settings().mcp_response_bytes} bytes and was left out; it may have done its work"
        )
    if flight.status in REFUSED:
        return failed(server, f"it refused the call (HTTP {flight.status}): {remedy(server)}")
    if isinstance(sent.error, ValidationError):
        return failed(server, "its answer does not follow the protocol and was left out; it may have done its work")
    if isinstance(sent.error, MCPError) and is_answer(flight, sent):
        return failed(server, sent.error.message[:_MESSAGE])
    if flight.rejected:
        return failed(server, f"it refused the call (HTTP {flight.status})")
    raise OutcomeUnknown(f"the connection to {server.label} was lost before it said how the call ended")


def is_answer(flight: Flight, sent: Sent) -> bool:
    """Whether the error is the server's own word, not the SDK's for a connection that was lost."""
    code = sent.error.code if isinstance(sent.error, MCPError) else None
    if sent.link.pipes is not None:
        return code is not None and (code != types.CONNECTION_CLOSED or not sent.link.over.is_set())
    return flight.answered or (flight.settled and code != types.PARSE_ERROR)
