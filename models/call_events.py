"""What the events of a tool call say, by the kind of call."""

from typing import TYPE_CHECKING, Any

from models.pure import masking

if TYPE_CHECKING:
    from models.tool_call import ToolCall

RESULTS = {
    "builtin": ("agent.tool_result", "tool_use_id"),
    "custom": ("user.custom_tool_result", "custom_tool_use_id"),
    "self_hosted": ("user.tool_result", "tool_use_id"),
    "mcp": ("agent.mcp_tool_result", "mcp_tool_use_id"),
}
"""By kind of call: its result's event, and the field that names the call there. Runners run an allowed call that has none."""
OF_CLIENT = frozenset({"custom", "self_hosted"})
"""Kinds of calls that the client runs; their results come from it, unless the call was ended without it."""
_USES = {"custom": "agent.custom_tool_use", "mcp": "agent.mcp_tool_use"}
_NEVER_RUN = frozenset({"denied", "refused", "expired", "cancelled", "answered", "replaced"})


def use(call: "ToolCall", schema: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """The event of the call itself: its type and its body.

    Runners run what they own and is not denied, so a call that never will run says `deny`. The client that runs it gets its input
    whole; of a call of ours, what the schema or its looks say is secret is masked.
    """
    effect = "deny" if call.status in _NEVER_RUN else call.permission
    body: dict[str, Any] = {
        "name": call.tool or call.name,
        "input": call.input if call.kind in OF_CLIENT else masking.mask(call.input, schema).shown,
    }
    if call.kind != "custom":
        body |= {"evaluated_permission": effect} | _evaluation(call.permission, call.status)
    elif effect == "deny":
        body["evaluated_permission"] = effect
    if call.server:
        body["mcp_server_name"] = call.server
    return _USES.get(call.kind, "agent.tool_use"), body


def result(call: "ToolCall") -> tuple[str, dict[str, Any]]:
    """The event of its result, as runners look for it: its type and its body."""
    kind, ref = RESULTS[call.kind]
    body: dict[str, Any] = {ref: call.id, "content": call.result, "is_error": call.is_error}
    return kind, body | ({"structured_content": call.structured} if call.structured is not None else {})


def _evaluation(permission: str, status: str) -> dict[str, Any]:
    if status == "refused":
        return {}
    if permission == "deny":
        judged = {"type": "deny", "reason_code": "high_risk"}
        return {"evaluation": {"type": "auto", "evaluated_permission": judged}}
    return {"evaluation": {"type": f"always_{permission}"}}
