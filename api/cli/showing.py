"""Approvals, grants and events in words for a terminal.

Characters that a terminal would obey or hide (escapes, right-to-left marks) are shown as `<U+202E>`.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import click
import rfc8785

from models.pure.visible import visible

REACHES = {"once": "this call", "session": "for the rest of this session", "always": "in every session of this agent"}
_TIMEOUTS = {"deny": "then it is not run", "end_run": "then the run ends", "allow": "then it is allowed"}


def describe(approval: dict[str, Any]) -> Iterator[str]:
    """An approval in lines. Raises click.ClickException when its input is not the one that its hash stands for."""
    shown, masked = str(approval["input_canonical"]), approval["masked"]
    if not masked and hashlib.sha256(shown.encode()).hexdigest() != approval["input_sha256"]:
        raise click.ClickException(
            f"approval {approval['id']}: the input shown is not the one that would run; do not decide it here"
        )
    yield ""
    if approval["kind"] == "unknown_outcome":
        yield click.style("It began, and nobody knows whether it took effect. What became of it?", bold=True)
    yield click.style(visible(approval.get("prompt") or "May this run?"), bold=True)
    yield f"  tool      {visible(approval['tool'])}"
    yield f"  input     {visible(shown)}"
    if masked:
        yield f"  hidden    {visible(', '.join(masked))}: secrets; what runs has them"
    if hints := approval.get("annotations"):
        yield f"  says      {spelled(hints)} (its own word)"
    yield f"  rule      {visible(approval['rule'])}"
    yield f"  session   {visible(approval['session_id'])}"
    yield f"  waiting   since {approval['created_at']}"
    then = _TIMEOUTS[approval["on_timeout"]] if approval["kind"] == "tool_call" else "then it is given up"
    yield f"  deadline  {approval['expires_at']}, {then}"
    for key, asked in (approval.get("questions") or {}).items():
        yield f"  asks      {visible(key)}: {visible(asked['message'])}"
    yield from _known(approval.get("attempt"))
    yield ""


def _known(attempt: dict[str, Any] | None) -> Iterator[str]:
    """What is known of an attempt whose end is not."""
    if attempt:
        yield f"  attempt   {attempt['number']}, by {visible(attempt['worker'])}, since {attempt['started_at']}"
        yield from (f"  printed   {visible(line)}" for line in attempt["output"].splitlines()[-20:])


def outcome(approval: dict[str, Any]) -> Iterator[str]:
    """What was decided, in lines."""
    if approval["status"] == "pending":
        return
    yield f"{approval['id']}: {approval['status']}, by {visible(str(approval['decided_by']))}."
    if approval["decided_input"] is not None:
        yield f"  input instead  {spelled(approval['decided_input'])}"
    if message := (approval["decision"] or {}).get("deny_message"):
        yield f"  message        {visible(message)}"
    if approval["grant"]:
        yield f"  {given(approval['grant'])}"


def given(grant: dict[str, Any]) -> str:
    """A grant in a line."""
    limits = [f"until {grant['expires_at']}"] if grant["expires_at"] else []
    if grant["max_uses"]:
        limits.append(f"{grant['uses']} of {grant['max_uses']} uses")
    ended = "" if grant["live"] else f", revoked by {visible(grant['revoked_by'])}" if grant["revoked_at"] else ", over"
    reach = f"in session {grant['session_id']}" if grant["scope"] == "session" else f"in every session of {grant['agent_id']}"
    said = ", ".join([visible(grant["covers"]), visible(reach), *limits])
    return f"{grant['id']}  {said}{ended}"


def narrate(event: dict[str, Any]) -> Iterator[str]:
    """What an event says to an onlooker, in lines; nothing for most."""
    texts = [visible(b.get("text", ""), lines=True) for b in event.get("content") or [] if b.get("type") == "text"]
    match event["type"]:
        case "agent.message":
            yield from (f"agent: {text}" for text in texts)
        case "agent.tool_use" | "agent.mcp_tool_use" | "agent.custom_tool_use":
            yield f"agent wants {visible(event['name'])} {spelled(event['input'])}"
        case "agent.tool_result" | "agent.mcp_tool_result":
            yield from (f"result: {text}" for text in texts)
        case "session.error":
            yield f"error: {visible(str(event['error'].get('message')))}"
        case "session.status_idle":
            reason = event["stop_reason"]["type"]
            yield (
                "The session waits for a decision." if reason == "requires_action" else f"The session is idle: {visible(reason)}."
            )
        case "session.status_terminated":
            yield "The session has ended."


def spelled(value: Any) -> str:
    """A JSON value as RFC 8785 spells it, visible."""
    return visible(rfc8785.dumps(value).decode())
