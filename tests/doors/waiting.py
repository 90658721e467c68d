"""Sessions with calls that wait for a person."""

from typing import Any

from doors.served import Caller, confirmation, good
from rows.stage import Stage, call, entry

from models.flow.run.results import lose_call
from models.session.tool_call.row import ToolCall
from models.workspace import toolset

SECRETIVE = {
    "type": "custom",
    "name": "transfer",
    "description": "Move money.",
    "input_schema": {
        "type": "object",
        "properties": {"amount": {"type": "integer"}, "pin": {"type": "string", "writeOnly": True}},
        "required": ["amount"],
        "additionalProperties": False,
    },
    "permission_policy": {"type": "always_ask"},
}
"""A client tool with a secret parameter."""


def asked(caller: Caller, stage: Stage, *blocks: dict[str, Any], **session: Any) -> list[ToolCall]:
    """Create a session and run its first turn. Returns its calls, by default one of `ls -l`, which wait for a person."""
    session_id = caller.session(**session)["id"]
    caller.say(session_id)
    return stage.reply(session_id, *(blocks or [call(command="ls -l")]))


def agent_with(caller: Caller, **approval: Any) -> dict[str, Any]:
    """Create an agent whose tool `bash` has these settings for approvals."""
    config = {"name": "bash", "approval": approval} if approval else {"name": "bash"}
    return caller.agent(tools=[{"type": "agent_toolset_20260401", "configs": [config]}])


def secretive(caller: Caller, stage: Stage, **arguments: Any) -> ToolCall:
    """Return a waiting call of `transfer`."""
    agent = caller.agent(tools=[SECRETIVE])
    return asked(caller, stage, call("transfer", **(arguments or {"amount": 5, "pin": "4711"})), agent=agent)[0]


def approval_of(caller: Caller, tool_call: ToolCall) -> dict[str, Any]:
    """Return the call's last approval."""
    approvals = good(caller.get("/v1/approvals", params={"session_id": tool_call.session_id}))["data"]
    approval: dict[str, Any] = [a for a in approvals if a["tool_use_id"] == tool_call.id][-1]
    return approval


def decide(caller: Caller, tool_call: ToolCall, **decision: Any) -> dict[str, Any]:
    """Decide the call's approval. Returns the decided approval."""
    return good(caller.post(f"/v1/approvals/{approval_of(caller, tool_call)['id']}/decision", json=decision))


def by_event(caller: Caller, tool_call: ToolCall, **decision: Any) -> dict[str, Any]:
    """Decide by `user.tool_confirmation`. Returns the decided approval."""
    good(caller.tell(tool_call.session_id, confirmation(tool_call.id, **decision)))
    return approval_of(caller, tool_call)


def announced(caller: Caller, stage: Stage) -> ToolCall:
    """Return a waiting call of an announced toolset."""
    toolset.announce({"orders": [entry("refund")]})
    agent = caller.agent(
        mcp_servers=[{"type": "url", "name": "shop", "url": "assent:orders"}],
        tools=[{"type": "mcp_toolset", "mcp_server_name": "shop"}],
    )
    return asked(caller, stage, call("mcp__shop__refund", n=5), agent=agent)[0]


def running(caller: Caller, stage: Stage, tool_call: ToolCall) -> ToolCall:
    """Allow a waiting call, and claim it."""
    decide(caller, tool_call, result="allow")
    claimed = stage.claim_call(tool_call)
    assert claimed
    return claimed


def lose(stage: Stage, tool_call: ToolCall) -> None:
    """Claim an allowed call, and lose its worker."""
    claimed = stage.claim_call(tool_call)
    assert claimed
    stage.worked(claimed, lambda locked: lose_call(locked, locked.db.get_one(ToolCall, claimed.id)))
