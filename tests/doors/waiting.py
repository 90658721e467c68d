"""Sessions with calls that wait for a person."""

from typing import Any

from doors.served import Caller, good
from rows.stage import Stage, call, entry

from models import flow
from models.session.tool_call import ToolCall
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
"""A client tool that takes a secret."""


def asked(caller: Caller, stage: Stage, *blocks: dict[str, Any], **session: Any) -> list[ToolCall]:
    """The calls of a new session's first turn, `ls -l` by default; all of them wait."""
    made = caller.session(**session)
    caller.say(made["id"])
    return stage.reply(made["id"], *(blocks or [call(command="ls -l")]))


def secretive(caller: Caller, stage: Stage, **arguments: Any) -> ToolCall:
    """A call of `transfer` that waits."""
    agent = caller.agent(tools=[SECRETIVE])
    [found] = asked(caller, stage, call("transfer", **(arguments or {"amount": 5, "pin": "4711"})), agent=agent)
    return found


def approval_of(caller: Caller, found: ToolCall) -> dict[str, Any]:
    """The approval that the call raised last."""
    approvals = good(caller.get("/v1/approvals", params={"session_id": found.session_id}))["data"]
    approval: dict[str, Any] = [a for a in approvals if a["tool_use_id"] == found.id][-1]
    return approval


def decide(caller: Caller, found: ToolCall, **said: Any) -> dict[str, Any]:
    """Decide the call's approval: the approval as it is then."""
    return good(caller.post(f"/v1/approvals/{approval_of(caller, found)['id']}/decision", json=said))


def announced(caller: Caller, stage: Stage) -> ToolCall:
    """A call of a toolset that waits."""
    toolset.announce({"orders": [entry("refund")]})
    agent = caller.agent(
        mcp_servers=[{"type": "url", "name": "shop", "url": "assent:orders"}],
        tools=[{"type": "mcp_toolset", "mcp_server_name": "shop"}],
    )
    return asked(caller, stage, call("mcp__shop__refund", n=5), agent=agent)[0]


def running(caller: Caller, stage: Stage, found: ToolCall) -> ToolCall:
    """The call, allowed and taken by a worker."""
    decide(caller, found, result="allow")
    taken = stage.claim_call(found)
    assert taken
    return taken


def lose(stage: Stage, found: ToolCall) -> None:
    """The call, which was allowed, is taken by a worker that dies in the middle."""
    taken = stage.claim_call(found)
    assert taken
    stage.locked(taken.session_id, lambda db, session: flow.lose_call(db, session, db.get_one(ToolCall, taken.id)))
