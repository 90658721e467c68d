"""Approvals, grants and events as text for a terminal.

Characters that a terminal would interpret or hide (escapes, right-to-left marks) are shown as `<U+202E>`.
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import click
import rfc8785

from api.cli.calls import input_lines
from api.cli.tables import painted
from models.briefing.because import because
from models.pure.state_words import approval_state, session_state
from models.pure.text.path import path_in_words
from models.pure.text.relative_time import ago, time_left
from models.pure.text.visible import visible, visible_lines

REACHES = {"once": "this call", "session": "for the rest of this session", "always": "in every session of this agent"}
_TIMEOUTS = {
    "deny": "then it is not run",
    "end_run": "then the run ends",
    "escalate": "then others may decide, too",
    "allow": "then it is allowed",
}


def describe(approval: dict[str, Any], place: str = "", title: str | None = None) -> Iterator[str]:
    """Yield an approval's lines. Raises click.ClickException if the input does not match its hash.

    `place`: such as `3 of 51`. `title`: of the session.
    """
    input_text, masked_paths = str(approval["input_canonical"]), approval["masked"]
    if not masked_paths and hashlib.sha256(input_text.encode()).hexdigest() != approval["input_sha256"]:
        raise click.ClickException(
            f"approval {approval['id']}: the input shown is not the one that would run; do not decide it here"
        )
    yield ""
    if approval["kind"] == "unknown_outcome":
        yield click.style("Nobody knows whether this call took effect. What was its outcome?", bold=True)
    if backup_at := approval.get("may_have_been_decided_after"):
        yield click.style(f"May have been decided after the backup of {backup_at}; the call may have run then.", bold=True)
    before = click.style(f"{place}  ", dim=True) if place else ""
    yield before + click.style(visible(approval.get("prompt") or "May this run?"), bold=True)
    yield f"  agent     {path_of(approval)}"
    yield f"  tool      {visible(approval['tool'])}"
    yield from input_lines(approval["tool"], json.loads(input_text))
    if approval["tool"] == "bash" and (directory := json.loads(input_text).get("working_directory")):
        yield f"  directory {visible(str(directory))}"
    if masked_paths:
        yield f"  hidden    {visible(', '.join(masked_paths))}: secrets, which the call receives"
    if hints := approval.get("annotations"):
        yield f"  hints     {json_text(hints)} (by the tool's server, not verified)"
    yield f"  session   {visible(f'{title} · ' if title else '')}{visible(approval['session_id'])}"
    yield f"  asked     {since(approval['created_at'])}, {because(approval['rule'])}"
    at = f"{until(approval['expires_at'])} ({approval['expires_at'][:16].replace('T', ' ')} UTC)"
    yield f"  deadline  {at}, {_silence(approval)}"
    for option, settings in approval["not_offered"].items():
        yield f"  no option {option}: {visible(settings)} leave it out"
    if approval["widest_match"] == "exact":
        yield "  grants    cover one exact input only"
    yield from approvers(approval)
    for key, question in (approval.get("questions") or {}).items():
        yield f"  asks      {visible(key)}: {visible(question['message'])}"
    yield from _about_attempt(approval.get("attempt"))


def _silence(approval: dict[str, Any]) -> str:
    """Return what the present deadline does, as a clause."""
    if approval["kind"] != "tool_call":
        return "then the session rests" if approval["kind"] == "budget" else "then it is given up"
    escalation = approval.get("escalation") or {"level": 0, "levels": [None]}
    is_last = approval["on_timeout"] == "escalate" and escalation["level"] >= len(escalation["levels"])
    return _TIMEOUTS[escalation["then"] if is_last else approval["on_timeout"]]


def path_of(approval: dict[str, Any]) -> str:
    """Return the agent that asks, behind those above it: `Coordinator › Researcher`."""
    return path_in_words(step["agent_name"] for step in approval["path"])


def question(approval: dict[str, Any]) -> str:
    """Return the prompt in one line, behind the path if a sub-agent asks."""
    asker = f"{path_of(approval)}: " if len(approval["path"]) > 1 else ""
    return asker + visible(approval["prompt"])


def approvers(approval: dict[str, Any]) -> Iterator[str]:
    """Yield lines with the number of people who must agree; none if anybody decides alone. The briefing has their names."""
    if approval["people_only"]:
        but = ", not by who started the run" if approval["four_eyes"] else ""
        yield f"  approvers {tally(approval)}{but}; people sign in and vote, and this API key cannot"
    if approval["shortage"]:
        yield f"  shortage  {visible(approval['shortage'])}"
    if approval["decided_input"] is not None and approval["status"] == "pending":
        yield f"  edited    {json_text(approval['decided_input'])}"


def tally(approval: dict[str, Any]) -> str:
    """Return the progress of the votes, such as `1 of 2 approvals`."""
    count = sum(vote["result"] == "allow" for vote in approval["votes"])
    return f"{count} of {approval['required_approvals']} approvals"


def _about_attempt(attempt: dict[str, Any] | None) -> Iterator[str]:
    """Yield the known facts about an attempt whose outcome is unknown."""
    if attempt:
        yield f"  attempt   {attempt['number']}, by {visible(attempt['worker'])}, began {since(attempt['started_at'])}"
        yield from (f"  printed   {visible(line)}" for line in attempt["output"].splitlines()[-20:])


def since(time: str) -> str:
    """Return how long ago the time of a row is, such as `31 minutes ago`."""
    return ago(datetime.fromisoformat(time), datetime.now(UTC))


def until(time: str) -> str:
    """Return how much time is left until the time of a row, such as `23 hours left`."""
    return time_left(datetime.fromisoformat(time), datetime.now(UTC))


def dollars(amount: str | None) -> str:
    """Return an exact amount in dollars, rounded to cents; `under $0.01` for less."""
    if amount is None:
        return "unknown"
    exact = Decimal(amount)
    return "under $0.01" if 0 < exact < Decimal("0.005") else f"${exact:.2f}"


def outcome(approval: dict[str, Any], ending: str = "") -> Iterator[str]:
    """Yield the lines of a decision. `ending`: how the approval ended and by whom, as its briefing says it."""
    if approval["status"] == "pending":
        return
    state = approval_state(approval["status"], approval["decision"])
    yield f"{approval['id']}: {painted(f'{state.character} {visible(ending)}' if ending else state.text, state.word)}."
    if approval["decided_input"] is not None:
        yield f"  input instead  {json_text(approval['decided_input'])}"
    if message := (approval["decision"] or {}).get("deny_message"):
        yield f"  message        {visible(message)}"
    for grant in approval["grants"]:
        yield f"  {grant_line(grant)}"


def grant_line(grant: dict[str, Any]) -> str:
    """Return a grant as a line."""
    limits = [f"until {grant['expires_at']}"] if grant["expires_at"] else []
    if grant["max_uses"]:
        limits.append(f"{grant['uses']} of {grant['max_uses']} uses")
    end = "" if grant["live"] else f", revoked by {visible(grant['revoked_by'])}" if grant["revoked_at"] else ", over"
    of_session = grant["scope"] == "session"
    reach = f"in session {grant['session_id']}: {grant['reach']}" if of_session else f"in every session of {grant['agent_id']}"
    terms = ", ".join([visible(grant["covers"]), visible(reach), *limits])
    idle = f", allows nothing now: {visible(grant['not_offered'])}" if grant["not_offered"] else ""
    return f"{grant['id']}  {terms}{end}{idle}"


def narrate(event: dict[str, Any]) -> Iterator[str]:
    """Yield an event's lines for an observer. Most events have none."""
    texts = [visible_lines(b.get("text", "")) for b in event.get("content") or [] if b.get("type") == "text"]
    match event["type"]:
        case "agent.message":
            speaker = "assent" if "assent" in event else "agent"
            yield from (f"{speaker}: {text}" for text in texts)
        case "agent.tool_use" | "agent.mcp_tool_use" | "agent.custom_tool_use":
            asker = path_of(event["approval"]) if event.get("session_thread_id") and event.get("approval") else "agent"
            yield f"{asker} wants {visible(event['name'])} {json_text(event['input'])}"
        case "agent.thread_message_sent":
            yield from (f"to {visible(event.get('to_agent_name') or 'the coordinator')}: {text}" for text in texts)
        case "agent.thread_message_received":
            yield from (f"{visible(event.get('from_agent_name') or 'the coordinator')}: {text}" for text in texts)
        case "agent.tool_result" | "agent.mcp_tool_result":
            yield from (f"result: {text}" for text in texts)
        case "session.error":
            yield f"error: {visible(str(event['error'].get('message')))}"
        case "session.status_idle":
            yield painted(session_state("idle", event["stop_reason"]).text)
        case "session.status_terminated":
            yield "The session has ended."


def json_text(value: Any) -> str:
    """Return a JSON value as canonical JSON (RFC 8785), with every character visible."""
    return visible(rfc8785.dumps(value).decode())
