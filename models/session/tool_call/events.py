"""The events of a tool call and of its result, by the kind of call."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from models.session.event.fields import EventId, Time, one_of
from models.session.event.row import SHOWN
from models.session.tool_call.columns import ToolCallColumns
from models.session.tool_call.input import CallInput

RESULTS = {
    "builtin": ("agent.tool_result", "tool_use_id"),
    "custom": ("user.custom_tool_result", "custom_tool_use_id"),
    "self_hosted": ("user.tool_result", "tool_use_id"),
    "mcp": ("agent.mcp_tool_result", "mcp_tool_use_id"),
    "agent": ("agent.tool_result", "tool_use_id"),
}
"""By kind of call: the type of the result's event, and its field that names the call. Runners run allowed calls without one."""
OF_CLIENT = frozenset({"custom", "self_hosted"})
"""Kinds of calls that the client runs. The client posts their results, unless a call ended without the client."""
OF_AGENTS = "agent"
"""The kind of calls about sub-agents. The transaction that allows one carries it out (`models.flow.sub_agents`)."""
Json = dict[str, Any]
Permission = Annotated[str, one_of("allow", "ask", "deny")]


class AlwaysEvaluation(TypedDict):
    """The policy has one effect for every call of the tool."""

    type: Literal["always_allow", "always_ask"]


class Denial(TypedDict):
    """A denial by the policy."""

    type: Literal["deny"]
    reason_code: str


class AutoEvaluation(TypedDict):
    """The policy denied the call."""

    type: Literal["auto"]
    evaluated_permission: Denial


class _Use(TypedDict):
    """The fields of every call's event."""

    name: str
    input: Json
    approval: NotRequired[Json]
    shown_input: NotRequired[Annotated[Json, SkipJsonSchema()]]
    """SHOWN, for a call that the client runs."""


class _Evaluated(TypedDict, total=False):
    evaluation: Annotated[AlwaysEvaluation | AutoEvaluation, Field(discriminator="type")]


class _UseOfServer(_Evaluated, _Use):
    evaluated_permission: Permission


class AgentToolUse(_UseOfServer):
    """A call of a tool that the server runs."""

    type: Literal["agent.tool_use"]


class AgentMcpToolUse(_UseOfServer):
    """A call of a tool of an MCP server, by the tool's own name and the agent's name for the server."""

    type: Literal["agent.mcp_tool_use"]
    mcp_server_name: str


class _Denied(TypedDict, total=False):
    evaluated_permission: Permission


class AgentCustomToolUse(_Denied, _Use):
    """A call of a tool that the client runs."""

    type: Literal["agent.custom_tool_use"]


class Cached(TypedDict):
    """The earlier call whose result was reused. The tool did not run again."""

    tool_use_id: EventId
    at: Time


class _Result(TypedDict):
    content: list[Json]
    is_error: bool


class _Reused(TypedDict, total=False):
    cached: Cached


class AgentToolResult(_Reused, _Result):
    """The result of a call."""

    type: Literal["agent.tool_result"]
    tool_use_id: EventId


class _Structured(TypedDict, total=False):
    structured_content: Json
    """The result as data, if the tool returned data."""


class AgentMcpToolResult(_Structured, _Reused, _Result):
    """The result of a call of a tool of an MCP server."""

    type: Literal["agent.mcp_tool_result"]
    mcp_tool_use_id: EventId


class StoredToolResult(_Result):
    """The result of a built-in tool that the client's own worker ran, or the reason why it has none."""

    type: Literal["user.tool_result"]
    tool_use_id: EventId


class StoredResult(_Result):
    """The result of a client tool, or the reason why it has none."""

    type: Literal["user.custom_tool_result"]
    custom_tool_use_id: EventId


USES = frozenset({"agent.tool_use", "agent.custom_tool_use", "agent.mcp_tool_use"})
"""The types of calls' own events."""
_NEVER_RUN = frozenset({"denied", "refused", "expired", "cancelled", "answered", "replaced"})


def use(
    call: ToolCallColumns, call_input: CallInput, edited: Json | None, approval: Mapping[str, Any] | None
) -> AgentToolUse | AgentMcpToolUse | AgentCustomToolUse:
    """Return the call's own event. `edited` is a person's input with its secrets masked, or None. `approval` is what it waits for.

    Runners run the calls that they own and that are not denied, so a call that will never run says `deny`. If our workers run a
    call, its event has the masked input. If the client runs it, the event has the whole input, and SHOWN for all other readers.
    """
    effect = "deny" if call.status in _NEVER_RUN else call.permission
    shown = edited if edited is not None else call_input.shown_input
    is_of_client = call.kind in OF_CLIENT
    fields: _Use = {"name": call.tool or call.name, "input": call_input.input if shown is None or is_of_client else shown}
    if shown is not None and is_of_client:
        fields[SHOWN] = shown
    if approval:
        fields["approval"] = dict(approval)
    if call.kind == "custom":
        denial: _Denied = {"evaluated_permission": effect} if effect == "deny" else {}
        return AgentCustomToolUse({"type": "agent.custom_tool_use", **fields, **denial})
    evaluation: _Evaluated = {} if call.status == "refused" else {"evaluation": _evaluation(call.permission)}
    of_server: _UseOfServer = {**fields, "evaluated_permission": effect, **evaluation}
    if call.kind == "mcp":
        return AgentMcpToolUse({"type": "agent.mcp_tool_use", "mcp_server_name": call.server or "", **of_server})
    return AgentToolUse({"type": "agent.tool_use", **of_server})


def result(
    call: ToolCallColumns, content: list[Json], *, is_error: bool, structured: Json | None = None, cached: Cached | None = None
) -> AgentToolResult | AgentMcpToolResult | StoredToolResult | StoredResult:
    """Return the event of the call's result, whose secrets are masked. `structured` is the result as data."""
    fields: _Result = {"content": content, "is_error": is_error}
    if call.kind == "custom":
        return StoredResult({"type": "user.custom_tool_result", "custom_tool_use_id": call.id, **fields})
    if call.kind == "self_hosted":
        return StoredToolResult({"type": "user.tool_result", "tool_use_id": call.id, **fields})
    reused: _Reused = {"cached": cached} if cached else {}
    if call.kind != "mcp":
        return AgentToolResult({"type": "agent.tool_result", "tool_use_id": call.id, **fields, **reused})
    data: _Structured = {"structured_content": structured} if structured is not None else {}
    return AgentMcpToolResult({"type": "agent.mcp_tool_result", "mcp_tool_use_id": call.id, **fields, **reused, **data})


def _evaluation(permission: str) -> AlwaysEvaluation | AutoEvaluation:
    if permission == "deny":
        return {"type": "auto", "evaluated_permission": {"type": "deny", "reason_code": "high_risk"}}
    return {"type": "always_ask" if permission == "ask" else "always_allow"}
