"""The events of a tool call and of its result, by the kind of call."""

from typing import Any

from models.pure.masking import Echoes
from models.session.event import SHOWN
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
