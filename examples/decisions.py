"""Approvals in messages of OpenAI's format: which calls of a reply ask for one, and the message that decides it."""

import json
from typing import Any, Literal

TOOL = "client_requestApproval"


def asks(message: Any) -> dict[str, dict[str, Any]]:
    """Return what a reply's message asks for, by the ids of its calls: `message`, `tool`, `arguments`, `options` and more."""
    calls = [call for call in message.tool_calls or () if call.function.name == TOOL]
    return {call.id: json.loads(call.function.arguments) for call in calls}


def decision(call_id: str, decided: Literal["approve", "deny"], **more: Any) -> dict[str, Any]:
    """Return the message that decides a call. `more`: `scope`, `expires_in_seconds`, `arguments`; with deny only `message`."""
    return {"role": "tool", "tool_call_id": call_id, "content": json.dumps({"decision": decided} | more)}
