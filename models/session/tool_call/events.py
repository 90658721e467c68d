"""The events of a tool call and of its result, by the kind of call."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from models.pure.masking import Echoes
from models.session.event import SHOWN
from models.session.event.fields import EventId, Time, one_of
from models.session.tool_call.columns import ToolCallColumns
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult

RESULTS = {
    "builtin": ("agent.tool_result", "tool_use_id"),
    "custom": ("user.custom_tool_result", "custom_tool_use_id"),
    "self_hosted": ("user.tool_result", "tool_use_id"),
    "mcp": ("agent.mcp_tool_result", "mcp_tool_use_id"),
}
"""By kind of call: the type of the result's event, and its field that names the call. Runners run allowed calls without one."""
OF_CLIENT = frozenset({"custom", "self_hosted"})
"""Kinds of calls that the client runs. The client posts their results, unless a call ended without the client."""
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
    name: str
    input: Json
    approval: NotRequired[Json]


class _UseOfServer(_Use):
    evaluated_permission: Permission
    evaluation: NotRequired[Annotated[AlwaysEvaluation | AutoEvaluation, Field(discriminator="type")]]


class AgentToolUse(_UseOfServer):
    """A call of a tool that the server runs."""

    type: Literal["agent.tool_use"]


class AgentMcpToolUse(_UseOfServer):
    """A call of a tool of an MCP server, by the tool's own name and the agent's name for the server."""

    type: Literal["agent.mcp_tool_use"]
    mcp_server_name: str


class AgentCustomToolUse(_Use):
    """A call of a tool that the client runs."""

    type: Literal["agent.custom_tool_use"]
    evaluated_permission: NotRequired[Permission]


class Cached(TypedDict):
    """The earlier call whose result was reused. The tool did not run again."""

    tool_use_id: EventId
    at: Time


class _Result(TypedDict):
    content: list[Json]
    is_error: bool


class AgentToolResult(_Result):
    """The result of a call."""

    type: Literal["agent.tool_result"]
    tool_use_id: EventId
    cached: NotRequired[Cached]


class AgentMcpToolResult(_Result):
    """The result of a call of a tool of an MCP server."""

    type: Literal["agent.mcp_tool_result"]
    mcp_tool_use_id: EventId
    structured_content: NotRequired[Json]
    """The result as data, if the tool returned data."""
    cached: NotRequired[Cached]


class StoredToolResult(_Result):
    """The result of a built-in tool that the client's own worker ran, or the reason why it has none."""

    type: Literal["user.tool_result"]
    tool_use_id: EventId


class StoredResult(_Result):
    """The result of a client tool, or the reason why it has none."""

    type: Literal["user.custom_tool_result"]
    custom_tool_use_id: EventId


_USES = {"custom": "agent.custom_tool_use", "mcp": "agent.mcp_tool_use"}
USES = frozenset({"agent.tool_use", *_USES.values()})
"""The types of calls' own events."""
_NEVER_RUN = frozenset({"denied", "refused", "expired", "cancelled", "answered", "replaced"})


def use(call: ToolCallColumns, call_input: CallInput, edited: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """Return type and body of the call's own event. `edited` is a person's input with its secrets masked, or None.

    Runners run the calls that they own and that are not denied, so a call that will never run says `deny`. If our workers run a
    call, its event has the masked input. If the client runs it, the event has the whole input, and SHOWN for all other readers.
    """
    effect = "deny" if call.status in _NEVER_RUN else call.permission
    shown = edited if edited is not None else call_input.shown_input
    body: dict[str, Any] = {
        "name": call.tool or call.name,
        "input": call_input.input if shown is None or call.kind in OF_CLIENT else shown,
    }
    if shown is not None and call.kind in OF_CLIENT:
        body[SHOWN] = shown
    if call.kind != "custom":
        body |= {"evaluated_permission": effect} | _evaluation(call.permission, call.status)
    elif effect == "deny":
        body["evaluated_permission"] = effect
    if call.server:
        body["mcp_server_name"] = call.server
    return _USES.get(call.kind, "agent.tool_use"), body


def result(call: ToolCallColumns, stored: CallResult, echoes: Echoes) -> tuple[str, dict[str, Any]]:
    """Return type and body of the event of the call's result, in which `echoes` are masked."""
    kind, ref = RESULTS[call.kind]
    body: dict[str, Any] = {ref: call.id, "content": echoes.value(stored.content), "is_error": call.is_error}
    return kind, body | ({"structured_content": echoes.value(stored.structured)} if stored.structured is not None else {})


def _evaluation(permission: str, status: str) -> dict[str, Any]:
    if status == "refused":
        return {}
    if permission == "deny":
        return {"evaluation": {"type": "auto", "evaluated_permission": {"type": "deny", "reason_code": "high_risk"}}}
    return {"evaluation": {"type": f"always_{permission}"}}
