"""`assent approvals`: the inbox in a terminal.

What is shown is the canonical input whose hash goes with the decision, so nothing else can run in its place. Characters that a
terminal would obey or hide (escapes, right-to-left marks) are shown as `<U+202E>`.
"""

import hashlib
import json
import time
import unicodedata
from collections.abc import Iterator
from typing import Any

import click
import rfc8785

from api.cli_inbox import Approval, Inbox, Refused

WATCH_SECONDS = 1


def run(inbox: Inbox, *, watch: bool, as_json: bool) -> None:
    """Show what waits and ask about each, once or for ever."""
    seen: set[str] = set()
    while True:
        new = [a for a in inbox.pending() if a["id"] not in seen]
        if as_json and not watch:
            click.echo(json.dumps(new, indent=1))
            return
        if not new and not watch:
            click.echo("Nothing waits for a decision." if not seen else "Nothing else waits.")
            return
        # One at a time: what is decided may bring up more, or settle others.
        for approval in new if as_json else new[:1]:
            seen.add(approval["id"])
            if as_json:
                click.echo(json.dumps(approval))
            elif not ask(inbox, approval):
                return
        if not new:
            time.sleep(WATCH_SECONDS)


def ask(inbox: Inbox, approval: Approval) -> bool:
    """Show one approval and carry out what the person chooses. Returns whether to go on with the next."""
    for line in describe(approval):
        click.echo(line)
    choices = UNKNOWN if approval["kind"] == "unknown_outcome" else CALL
    for number, (words, _) in choices.items():
        click.echo(f"  {number}  {words}")
    chosen = click.prompt("Your choice", type=click.Choice(list(choices)), show_choices=False)
    decision = choices[chosen][1]
    if decision is None:
        return chosen != "q"
    asked = {field: click.prompt(label, prompt_suffix=" ") for field, label in ASKED.get(chosen + approval["kind"], {}).items()}
    try:
        for line in settle(inbox, approval, {**decision, **asked}):
            click.echo(line)
    except Refused as refused:
        click.echo(f"Not decided: {visible(refused.message)}")
    except KeyboardInterrupt:
        click.echo("The session goes on without an onlooker.")
    return True


CALL: dict[str, tuple[str, dict[str, Any] | None]] = {
    "1": ("allow once", {"result": "allow"}),
    "2": ("deny", {"result": "deny"}),
    "3": ("deny with a message", {"result": "deny"}),
    "4": ("end the run", {"result": "deny", "interrupt": True}),
    "5": ("skip", None),
    "q": ("quit", None),
}
UNKNOWN: dict[str, tuple[str, dict[str, Any] | None]] = {
    "1": ("it happened: tell the agent this result", {"outcome": "happened"}),
    "2": ("run it again, though it may have happened", {"outcome": "rerun"}),
    "3": ("give up: tell the agent that it is not known", {"outcome": "give_up"}),
    "5": ("skip", None),
    "q": ("quit", None),
}
ASKED = {
    "3tool_call": {"deny_message": "Tell the agent:"},
    "1unknown_outcome": {"result": "The result:"},
}


def settle(inbox: Inbox, approval: Approval, decision: dict[str, Any]) -> Iterator[str]:
    """Decide, then say what the session does until it is idle. Raises Refused when it was not decided."""
    stream = inbox.follow(approval["session_id"])
    try:
        inbox.decide(approval, decision)
        yield "Decided."
        for event in stream.until_idle():
            yield from narrate(event)
    finally:
        stream.close()


def describe(approval: Approval) -> Iterator[str]:
    """An approval in lines. Raises click.ClickException when its input is not the one that its hash stands for."""
    shown = str(approval["input_canonical"])
    if hashlib.sha256(shown.encode()).hexdigest() != approval["input_sha256"]:
        raise click.ClickException(
            f"approval {approval['id']}: the input shown is not the one that would run; do not decide it here"
        )
    yield ""
    if approval["kind"] == "unknown_outcome":
        yield click.style("It began, and nobody knows whether it took effect. What became of it?", bold=True)
    yield click.style(visible(approval.get("prompt") or "May this run?"), bold=True)
    yield f"  tool      {visible(approval['tool'])}"
    yield f"  input     {visible(shown)}"
    yield f"  session   {visible(approval['session_id'])}"
    yield f"  waiting   since {approval['created_at']}"
    yield f"  deadline  {approval['expires_at']}"
    yield ""


def narrate(event: dict[str, Any]) -> Iterator[str]:
    """What an event says to an onlooker, in lines; nothing for most."""
    texts = [visible(b.get("text", ""), lines=True) for b in event.get("content") or [] if b.get("type") == "text"]
    match event["type"]:
        case "agent.message":
            yield from (f"agent: {text}" for text in texts)
        case "agent.tool_use" | "agent.mcp_tool_use" | "agent.custom_tool_use":
            yield f"agent wants {visible(event['name'])} {visible(rfc8785.dumps(event['input']).decode())}"
        case "agent.tool_result" | "agent.mcp_tool_result":
            yield from (f"result: {text}" for text in texts)
        case "session.error":
            yield f"error: {visible(str(event['error'].get('message')))}"
        case "session.status_idle":
            reason = event["stop_reason"]["type"]
            yield ("It waits for a decision." if reason == "requires_action" else f"The session is idle: {visible(reason)}.")
        case "session.status_terminated":
            yield "The session has ended."


def visible(text: str, *, lines: bool = False) -> str:
    """The text with every character that a terminal would obey or hide spelled out; `lines` leaves line ends as they are."""
    return "".join(c if _is_plain(c) or (lines and c == "\n") else f"<U+{ord(c):04X}>" for c in text)


def _is_plain(character: str) -> bool:
    # Controls, formats such as right-to-left marks, surrogates, private and unassigned ones, odd spaces and line separators.
    category = unicodedata.category(character)
    return character == " " or not (category[0] == "C" or category in {"Zl", "Zp", "Zs"})
