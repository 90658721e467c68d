"""What the events of a tool call say, by the kind of call."""

from typing import TYPE_CHECKING, Any

from models.pure.masking import Echoes
from models.session.call_input import CallInput
from models.session.call_result import CallResult

if TYPE_CHECKING:
    from models.session.tool_call import ToolCall

RESULTS = {
    "builtin": ("agent.tool_result", "tool_use_id"),
    "custom": ("user.custom_tool_result", "custom_tool_use_id"),
    "self_hosted": ("user.tool_result", "tool_use_id"),
    "mcp": ("agent.mcp_tool_result", "mcp_tool_use_id"),
}
"""By kind of call: its result's event, and the field that names the call there. Runners run an allowed call that has none."""
OF_CLIENT = frozenset({"custom", "self_hosted"})
"""Kinds of calls that the client runs; their results come from it, unless the call was ended without it."""
SHOWN = "shown_input"
"""In the stored event of a client's call: the input for readers who do not run it. No reader gets this field itself."""
_USES = {"custom": "agent.custom_tool_use", "mcp": "agent.mcp_tool_use"}
_NEVER_RUN = frozenset({"denied", "refused", "expired", "cancelled", "answered", "replaced"})


def use(call: "ToolCall", call_input: CallInput, edited: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """The event of the call itself: its type and its body. `edited` is a person's input with its secrets masked, or None.

    Runners run the calls that they own and that are not denied, so a call that will never run says `deny`. The event of a call
    of ours has the masked input. The event of a client's call has the whole input, and beside it SHOWN for all other readers.
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


def result(call: "ToolCall", stored: CallResult, echoes: Echoes) -> tuple[str, dict[str, Any]]:
    """The event of its result, as runners look for it: its type and its body, in which `echoes` are masked."""
    kind, ref = RESULTS[call.kind]
    body: dict[str, Any] = {ref: call.id, "content": echoes.value(stored.content), "is_error": call.is_error}
    return kind, body | ({"structured_content": echoes.value(stored.structured)} if stored.structured is not None else {})


def _evaluation(permission: str, status: str) -> dict[str, Any]:
    if status == "refused":
        return {}
    if permission == "deny":
        judged = {"type": "deny", "reason_code": "high_risk"}
        return {"evaluation": {"type": "auto", "evaluated_permission": judged}}
    return {"evaluation": {"type": f"always_{permission}"}}
